"""How fast the what-if engine is: the whole Monte Carlo, and a curve behind a slider.

python tests/bench/bench_whatif.py [--runs 1000] [--days 30]
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rankscope.analytics.whatif import Scenario, curve, simulate

# 98,304 GPUs that fail each 18 minutes (arXiv 2602.00277), everything that the engine knows switched on.
FLEET = Scenario(
    groups=12,
    gpus=98304,
    mtbf_s=18 * 60,
    detect_s=60,
    stall_s=100,
    redo_s=20,
    restart_s=540,
    heal_s=30,
    rejoin_stall_s=100,
    checkpoint_interval_s=600,
    checkpoint_write_s=10,
    spare_hosts=20,
    repair_s=7200,
)
PLAIN = Scenario(groups=12, gpus=98304, mtbf_s=18 * 60, stall_s=180, restart_s=600)
_POINTS = [float(groups) for groups in range(1, 26)]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=1000)
    arguments.add_argument("--days", type=float, default=30)
    given = arguments.parse_args()
    print(f"{os.cpu_count()} cores, {given.runs} runs of {given.days:g} days")
    for name, fleet in (("plain", PLAIN), ("everything", FLEET)):
        scenario = replace(fleet, days=given.days)
        rate = scenario.horizon_s / scenario.mtbf_s * given.runs / 1e6
        _measure(f"simulate, {name}, {rate:.1f} M failures", partial(simulate, scenario, given.runs))
        _measure(f"curve, {name}, {len(_POINTS)} points", partial(curve, scenario, "groups", _POINTS))


def _measure(what: str, work: Callable[[], object]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    print(f"{what:40} {time.perf_counter() - wall:6.2f} s   {time.process_time() - cpu:6.2f} s of CPU")


if __name__ == "__main__":
    main()
