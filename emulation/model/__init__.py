"""A start of any number of ranks in virtual time: exact schedules, a few costs, no cluster."""

from rankscope.emulation.model.costs import Costs
from rankscope.emulation.model.scenario import AllGather, Ring, Scenario, Sizes
from rankscope.emulation.model.simulate import Bottleneck, Outcome, simulate

__all__ = ["AllGather", "Bottleneck", "Costs", "Outcome", "Ring", "Scenario", "Sizes", "simulate"]
