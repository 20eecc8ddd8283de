"""Hypothesis strategies for environments and actions: any arguments that are allowed, any numbers as actions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

from queue_env import QueueEnv, Workload
from queue_env.action import KINDS
from queue_env.scenarios import CLOCKS
from tests.strategies import workloads

SMOOTH = (
    {"law": "exponential", "mean": 1.0},
    {"law": "exponential", "mean": 40.0},
    {"law": "pareto", "alpha": 1.5, "mean": 1.0},
    {"law": "weibull", "shape": 0.4, "mean": 0.01},
)
WITH_ATOMS = {"law": "deterministic", "value": 2.0}
PATIENCE = ({"law": "exponential", "mean": 1.0}, {"law": "weibull", "shape": 0.4, "mean": 30.0}, WITH_ATOMS)
EXTREME = (0.0, -0.0, 0.5, 1.0, -1.0, 5e-324, 1e-300, 1e16, 1.7e308, -1.7e308, math.inf, -math.inf)


@dataclass(frozen=True)
class RandomRun:
    """Arguments of an environment, and what the jobs and the actions are drawn from.

    Attributes:
        arguments: of `QueueEnv`.
        options: of the first reset.
        seed: of the jobs and the actions.
        extreme: share of the numbers in actions that are no proper rates or priorities.
        pool: the numbers that these are.
    """

    arguments: dict[str, Any]
    options: dict[str, Any] | None
    seed: int
    extreme: float
    pool: tuple[float, ...]

    def env(self) -> QueueEnv:
        """The environment, before its first reset."""
        return QueueEnv(**self.arguments)

    def actions(self, env: QueueEnv) -> Iterator[Any]:
        """Actions without end, the same for every environment."""
        rng = np.random.default_rng(self.seed)
        while True:
            if env.actions.kind == "rule":
                yield int(rng.integers(len(env.actions.rules)))
            else:
                yield self._numbers(rng, env.actions.entries)

    def _numbers(self, rng: np.random.Generator, entries: int) -> NDArray[np.float64]:
        proper = rng.uniform(-1.0, 1.0, entries) if rng.random() < 0.5 else np.full(entries, rng.random())
        return np.where(rng.random(entries) < self.extreme, rng.choice(self.pool, entries), proper)


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    """Scenarios of few servers, in overload too where jobs have patience."""
    made: dict[str, Any] = {
        "servers": draw(st.integers(1, 4)),
        "load": draw(st.sampled_from([0.97, 0.8, 0.1])),
        "sizes": draw(st.sampled_from((*SMOOTH, WITH_ATOMS))),
    }
    if draw(st.booleans()):
        made |= {"patience": draw(st.sampled_from(PATIENCE)), "clock": draw(st.sampled_from(CLOCKS))}
        made["load"] = draw(st.sampled_from([3.0, 1.0, 0.9, 0.5]))
    return made


@st.composite
def rewards(draw: st.DrawFn, scenario: dict[str, Any]) -> dict[str, float]:
    """Sums of terms with weights."""
    terms = ["mean", "slowdown", "moment(2)", "moment(0.5)", "exceed(3)", "wait", "abandon"]
    if scenario["load"] < 1 and scenario["sizes"] != WITH_ATOMS:
        terms.append("tail")  # where sizes have a bound, so has its range
    chosen = draw(st.lists(st.sampled_from(terms), min_size=1, max_size=4, unique=True))
    return {term: draw(st.sampled_from([0.0, 0.3, 1.0, 1e3])) for term in chosen}


@st.composite
def episodes(draw: st.DrawFn, scenario: dict[str, Any]) -> dict[str, Any]:
    """Episodes that end within some dozens of decisions, or hardly ever."""
    if "patience" not in scenario and scenario["sizes"] != WITH_ATOMS and draw(st.booleans()):
        return {"episode": "big-job", "big_sizes": draw(st.sampled_from([(1.0, 5.0), (0.5, 100.0)]))}
    if draw(st.booleans()):
        return {"episode": "jobs", "jobs": draw(st.sampled_from([1000, 20, 5, 1]))}
    return {"episode": "horizon", "horizon": draw(st.sampled_from([300.0, 5.0, 0.3]))}


@st.composite
def starts(draw: st.DrawFn, scenario: dict[str, Any]) -> dict[str, Any]:
    """Jobs of a workload, in which ties abound, or jobs that are there already."""
    if draw(st.booleans()):
        jobs = draw(workloads(25, patience="patience" in scenario))
        return {"workload": Workload(jobs.arrival_times, jobs.sizes, jobs.patience)}
    shares = draw(st.lists(st.sampled_from([1e-9, 0.3, 1.0]), max_size=3))
    sizes = [draw(st.sampled_from([1e-3, 1.0, 50.0])) for _ in shares]
    return {
        "jobs": [
            {"size": size, "remaining": share * size, "age": size} for size, share in zip(sizes, shares, strict=True)
        ]
    }


@st.composite
def random_runs(draw: st.DrawFn) -> RandomRun:
    """Environments with any arguments, little room for jobs, and records; how they start, and actions."""
    scenario = draw(scenarios())
    action = draw(st.sampled_from(sorted(KINDS)))
    by_job, rates = action in ("allocation", "priority"), action in ("allocation", "anchor")
    observation = draw(st.sampled_from(["flat", "dict"] if by_job else ["flat", "dict", "compact"]))
    if action == "threshold":
        observation = "summary"
    hidden = action != "anchor" and observation != "compact" and draw(st.booleans())
    slots = draw(st.integers(2 * scenario["servers"] + 3 if by_job else 4, 16)) if action != "threshold" else None
    arguments = {
        "scenario": scenario,
        "action": action,
        "observation": observation,
        "size_knowledge": "unknown" if hidden else "known",
        "slots": slots,
        "capacity": max(slots or 4, scenario["servers"] + 1) + draw(st.integers(0, 20)),
        "reward": draw(rewards(scenario)),
        "decision_interval": draw(st.none() | st.sampled_from([0.05, 0.7, 6.0])),
        **({"work_conserving": draw(st.booleans())} if rates else {}),
        **({"symmetric_actions": draw(st.booleans())} if rates or action == "threshold" else {}),
        "allocation_in_info": observation not in ("compact", "summary") and draw(st.booleans()),
        "records": True,
        **draw(episodes(scenario)),
    }
    return RandomRun(
        arguments,
        options=draw(st.none() | starts(scenario)) if arguments["episode"] != "big-job" else None,
        seed=draw(st.integers(0, 2**32 - 1)),
        extreme=draw(st.sampled_from([0.0, 0.2, 1.0])),
        pool=tuple(draw(st.lists(st.sampled_from(EXTREME) | st.floats(allow_nan=False), min_size=1, max_size=4))),
    )
