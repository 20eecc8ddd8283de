"""Where big-job episodes start: what is present at random arrivals of a long plain run of the kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from queue_env.kernel.layout import AS_ANCHOR, AS_PARTIAL, Memory
from queue_env.plan import make_plan
from queue_env.scenarios import Scenario
from queue_env.system import System

__all__ = ["PlainState", "plain_states"]

_WARMUP, _APART = 20_000, 200  # arrivals before the first state, and between states
_ENDLESS = 2**62


class PlainState(NamedTuple):
    """What is present in a system just after an arrival.

    Attributes:
        jobs: as the option `jobs` of the environment's `reset` takes them.
        largest: the largest original size present [work].
    """

    jobs: list[dict[str, Any]]
    largest: float


def plain_states(model: Scenario, policy: Any, seed: np.random.SeedSequence, count: int) -> list[PlainState]:
    """Return states of one run of the kernel, which begins empty.

    Args:
        model: the scenario.
        policy: as for `simulate`; stable on the scenario.
        seed: of the run; the states are a function of it and of the policy.
        count: how many.
    """
    setting = make_plan(model, [policy]).settings[0]
    system, stream = System(setting, counted=(0, _ENDLESS), relative=True), model.stream(seed)
    system.feed(stream.chunk(_WARMUP))
    states = []
    for _ in range(count):
        system.feed(stream.chunk(_APART))
        states.append(_state(system.memory))
    return states


def _state(memory: Memory) -> PlainState:
    """Read the jobs present, oldest first; what is served is written down at its last change of rate."""
    s, jobs = memory.system[0], memory.jobs
    remaining = jobs["remaining"].copy()
    service = memory.service[: s["in_service"]]
    remaining[service["slot"]] = service["key"] - s["now"]
    for role, where in (("anchor", AS_ANCHOR), ("partial", AS_PARTIAL)):
        slot = s[role]
        if slot >= 0 and jobs["where"][slot] == where:
            remaining[slot] = s[f"{role}_remaining"] - s[f"{role}_rate"] * (s["now"] - s[f"{role}_since"])
    slots = np.flatnonzero(jobs["number"] >= 0)
    slots = slots[np.argsort(jobs["number"][slots])]
    sizes = jobs["size"][slots]
    left = np.clip(remaining[slots], 1e-12 * sizes, sizes)  # for the clock rounds
    ages = np.maximum(s["now"] - jobs["arrival"][slots], sizes - left)
    rows = zip(sizes.tolist(), left.tolist(), ages.tolist(), (slots == s["anchor"]).tolist(), strict=True)
    listed = [{"size": size, "remaining": rest, "age": age, "anchor": anchor} for size, rest, age, anchor in rows]
    return PlainState(listed, float(sizes.max(initial=0.0)))
