"""What Rankscope costs, measured in one run on this machine, and against what others take.

    python -m tests.bench [--peers] [--no-step] [--no-collector] [--docs]

Results go to bench-results/, as JSON. --peers installs what the recorder is measured against into an
environment of its own first; one that is not there is said to be missing. --docs writes docs/performance.md
from the results.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "bench-results"
PEERS = RESULTS / "peers"  # a virtual environment
PEER_NAMES = ("trackio", "tensorboard", "wandb", "mlflow")
PEER_TIMEOUT_S = 240


def main() -> int:
    """Measure, print, and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="install the peers that are missing first")
    parser.add_argument("--no-step", action="store_true", help="leave out the DDP step")
    parser.add_argument("--no-collector", action="store_true", help="leave out the collector")
    parser.add_argument("--docs", action="store_true", help="write docs/performance.md")
    args = parser.parse_args()
    sys.path.insert(0, str(HERE))
    import bench_collector
    import bench_recorder
    import bench_step

    if args.peers:
        _install_peers()
    found: dict[str, Any] = {"machine": machine()}
    _say("recorder")
    found["recorder"] = bench_recorder.measure()
    found["peers"] = {}
    for name in PEER_NAMES:
        _say(name)
        found["peers"][name] = measure_peer(name)
    if not args.no_step:
        _say("DDP step")
        found["step"] = bench_step.measure()
    if not args.no_collector:
        _say("collector")
        found["collector"] = bench_collector.measure()
    found["machine"]["load_after"] = os.getloadavg()[0]
    from performance_page import page

    text = page(found)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    for name in (stamp, "latest"):
        (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1))
    if args.docs:
        (ROOT / "docs" / "performance.md").write_text(text)
    return 0


def machine() -> dict[str, Any]:
    """What the numbers were measured on, and how busy it was with other things."""
    return {
        "when": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
    }


def measure_peer(name: str) -> dict[str, Any]:
    """One peer's numbers, or {"missing": why}."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        return {"missing": "not installed: python -m tests.bench --peers"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [python, HERE / "peers.py", name, folder], capture_output=True, text=True, cwd=folder,
                timeout=PEER_TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"missing": f"did not end within {PEER_TIMEOUT_S} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return {"missing": (done.stderr.strip().splitlines() or ["said nothing"])[-1][:200]}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def _install_peers() -> None:
    if not PEERS.exists():
        _say("installing peers")
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
    pip = [PEERS / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", HERE / "requirements.txt"], check=True)
    # TensorBoard's writer is a part of torch: this environment's is found after the peers' own packages.
    (site,) = PEERS.glob("lib/python3.*/site-packages")
    (site / "torch_from_here.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
