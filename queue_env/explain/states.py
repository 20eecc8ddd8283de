"""The states that a policy with an anchor is in, as a network would see them: a thin sample of a compiled run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.kernel.look import look
from queue_env.network import NAMES
from queue_env.progress import job_progress
from queue_env.scenarios import Scenario
from queue_env.settings import Setting
from queue_env.system import System
from queue_env.workload import Chunk, Stream

__all__ = ["APART", "States", "visited_states"]

FloatArray: TypeAlias = NDArray[np.float64]

APART = 40
"""Arrivals between two looks."""

_WARMUP = 30_000  # arrivals before the first look
_AT_ONCE = 1_000  # looks for which random numbers are drawn together
_COUNTED = 2**62


@dataclass(frozen=True, eq=False)
class States:
    """What arriving jobs find; with Poisson arrivals, shares of them are shares of time.

    Attributes:
        features: of the states with more jobs than servers, in the order of `queue_env.network.FEATURES`, shape
            (states, features).
        rates: the anchor's rate in each, shape (states,).
        looks: all states that were looked at, also those in which every job has a server.
    """

    features: FloatArray
    rates: FloatArray
    looks: int

    def columns(self, names: Sequence[str]) -> FloatArray:
        """The values of some features, shape (states, names)."""
        return self.features[:, [NAMES.index(name) for name in names]]


def visited_states(setting: Setting, model: Scenario, looks: int, seed: int = 0) -> States:
    """Run a policy and look at the system just before one in `APART` arrivals.

    Args:
        setting: the policy, which has an anchor that shares a server with another job.
        model: the scenario.
        looks: how often to look.
        seed: of the jobs.

    Returns:
        The states; a function of the arguments.
    """
    clock = None if model.patience is None else model.clock
    system = System(setting, clock=clock, counted=(0, _COUNTED), relative=True)
    stream = model.stream(np.random.SeedSequence(seed))
    system.feed(stream.chunk(_WARMUP))
    features, rates = np.empty((looks, len(NAMES))), np.full(looks, np.nan)
    with job_progress(looks * APART, "states") as advance:
        for first in range(0, looks, _AT_ONCE):
            count = min(_AT_ONCE, looks - first)
            for k, (gap, chunk) in enumerate(_pieces(stream, count, clock is not None), first):
                _wait(system, gap)
                state = system.memory.system[0]
                if state["number"] > state["servers"]:
                    rates[k] = look(system.memory, model.sizes.mean, features[k])
                system.feed(chunk)
            advance(count * APART)
    crowded = ~np.isnan(rates)
    return States(features[crowded], rates[crowded], looks)


def _pieces(stream: Stream, count: int, patient: bool) -> list[tuple[float, Chunk]]:
    """Return `count` pieces of `APART` jobs: the time to the first of them, from which their times count, and they."""
    kinds = ("arrivals", "sizes", "patience") if patient else ("arrivals", "sizes")
    gaps, *rest = (stream.take(kind, count * APART).reshape(count, APART) for kind in kinds)
    times = np.cumsum(gaps, axis=1) - gaps[:, :1]
    patience = rest[1] if patient else [None] * count
    columns = zip(gaps[:, 0].tolist(), times, rest[0], patience, strict=True)
    return [(gap, Chunk(own, sizes, limits)) for gap, own, sizes, limits in columns]


def _wait(system: System, gap: float) -> None:
    """Let time pass without an arrival."""
    state = system.memory.system
    state["horizon"] = system.now + gap
    system.drain()
    state = system.memory.system
    state["horizon"], state["draining"] = np.inf, 0
