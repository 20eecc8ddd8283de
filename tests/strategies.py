"""Hypothesis strategies for workloads and policies, as hostile as a float64 simulator must bear."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import hypothesis.strategies as st

CLOCKS = ("queue", "fractional", "sojourn")
PLAIN_POLICIES = (
    "fcfs", "lcfs", "plcfs", "srpt", "psjf", "sjf", "ps", "las", "split", "super-server",
)  # fmt: skip
PARAMETRIC_POLICIES = ("thresh-split", "dynasplit", "backlog-split", "loss-priority", "two-class")
ALL_POLICIES = PLAIN_POLICIES + PARAMETRIC_POLICIES


@dataclass(frozen=True)
class Workload:
    """Jobs in order of arrival, for a number of servers.

    `lattice`: gaps, sizes and patience are small multiples of 1/8, so that doubles hold every event time
    exactly under the policies whose rates are 0 and 1; bursts, equal sizes and simultaneous events abound.
    """

    arrival_times: tuple[float, ...]
    sizes: tuple[float, ...]
    patience: tuple[float, ...] | None
    servers: int
    lattice: bool


@dataclass(frozen=True)
class PolicyChoice:
    """The name of a policy, its parameters, and the spare capacity `delta` for those who need it."""

    name: str
    parameters: dict[str, float] = field(default_factory=dict)
    delta: float | None = None


@dataclass(frozen=True)
class Case:
    """A workload, a patience clock and a policy."""

    workload: Workload
    clock: str
    policy: PolicyChoice

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of `tests.reference.simulate`."""
        return {
            "arrival_times": self.workload.arrival_times,
            "sizes": self.workload.sizes,
            "policy": self.policy.name,
            "servers": self.workload.servers,
            "patience": self.workload.patience,
            "clock": self.clock,
            "delta": self.policy.delta,
            "parameters": self.policy.parameters,
        }


def lattice_values(low: int, high: int) -> st.SearchStrategy[float]:
    """Multiples of 1/8, from low/8 to high/8."""
    return st.integers(low, high).map(lambda k: k / 8)


def log_uniform(decades: float) -> st.SearchStrategy[float]:
    """Floats from 10^-decades to 10^decades, every magnitude alike."""
    return st.floats(-decades, decades).map(lambda exponent: 10.0**exponent)


def exponential(mean: float) -> st.SearchStrategy[float]:
    """Positive floats that look like a sample of the exponential law."""
    return st.floats(2.0**-20, 1 - 2.0**-20).map(lambda u: -mean * math.log(u))


def lattice_workload_parts(servers: int) -> tuple[st.SearchStrategy[float], ...]:
    """Gaps, sizes and patience on the lattice: loads around one, so that queues form."""
    gap = st.just(0.0) | lattice_values(0, max(2, 16 // servers))
    size = st.sampled_from((0.5, 1.0, 2.0)) | lattice_values(1, 32)
    patience = st.sampled_from((0.0, math.inf)) | lattice_values(0, 32)
    return gap, size, patience


def float_workload_parts(servers: int, decades: float) -> tuple[st.SearchStrategy[float], ...]:
    """Gaps, sizes and patience of every kind, those of the widest over 10^±decades."""
    gap = st.just(0.0) | exponential(1 / servers) | lattice_values(0, 8) | log_uniform(decades)
    size = exponential(1.0) | lattice_values(1, 8) | log_uniform(decades)
    patience = st.sampled_from((0.0, math.inf)) | exponential(1.0) | lattice_values(0, 16) | log_uniform(decades)
    return gap, size, patience


@st.composite
def workloads(
    draw: st.DrawFn,
    max_jobs: int = 40,
    *,
    lattice: bool | None = None,
    patience: bool | None = None,
    min_servers: int = 1,
) -> Workload:
    """Up to `max_jobs` jobs; `lattice` and `patience` fix what is drawn otherwise."""
    servers = draw(st.integers(min_servers, 7) | st.integers(min_servers, min_servers + 1))
    on_lattice = draw(st.booleans()) if lattice is None else lattice
    if on_lattice:
        gap, size, limit = lattice_workload_parts(servers)
    else:
        gap, size, limit = float_workload_parts(servers, draw(st.sampled_from((1.0, 3.0, 9.0))))
    count = draw(st.integers(1, max_jobs))
    gaps = _draw_list(draw, gap, count)
    impatient = draw(st.booleans()) if patience is None else patience
    return Workload(
        arrival_times=tuple(accumulate(gaps)),
        sizes=tuple(_draw_list(draw, size, count)),
        patience=tuple(_draw_list(draw, limit, count)) if impatient else None,
        servers=servers,
        lattice=on_lattice,
    )


def _draw_list(draw: st.DrawFn, values: st.SearchStrategy[float], count: int) -> list[float]:
    return draw(st.lists(values, min_size=count, max_size=count))


def _near(sizes: Sequence[float]) -> st.SearchStrategy[float]:
    """A threshold for sizes: one of them, or one that none or all of them exceed."""
    return st.sampled_from(sizes) | st.just(min(sizes) / 2) | st.just(2 * max(sizes))


def _thresh_split(workload: Workload) -> st.SearchStrategy[PolicyChoice]:
    return _near(workload.sizes).map(lambda d: PolicyChoice("thresh-split", {"d": d}))


def _dynasplit(workload: Workload) -> st.SearchStrategy[PolicyChoice]:
    delta = st.floats(0.01, 1.0) | st.floats(1.0, workload.servers + 1.0) | st.sampled_from((0.25, 1.0, 2.0))
    return delta.map(lambda value: PolicyChoice("dynasplit", delta=value))


def _backlog_split(workload: Workload) -> st.SearchStrategy[PolicyChoice]:
    b = st.sampled_from((0.5, 1.0, 2.0)) | log_uniform(2.0)
    kappa = st.sampled_from((0.0, 0.3, 0.5, 1.0)) | st.floats(0.0, 1.0)
    return st.builds(lambda b, kappa: PolicyChoice("backlog-split", {"b": b, "kappa": kappa}), b, kappa)


def _loss_priority(workload: Workload) -> st.SearchStrategy[PolicyChoice]:
    return _near(workload.sizes).map(lambda tau: PolicyChoice("loss-priority", {"tau": tau}))


def _two_class(workload: Workload) -> st.SearchStrategy[PolicyChoice]:
    return _near(workload.sizes).map(lambda tau: PolicyChoice("two-class", {"tau": tau}))


_PARAMETRIC: dict[str, Callable[[Workload], st.SearchStrategy[PolicyChoice]]] = {
    "thresh-split": _thresh_split,
    "dynasplit": _dynasplit,
    "backlog-split": _backlog_split,
    "loss-priority": _loss_priority,
    "two-class": _two_class,
}


def policies(workload: Workload, names: Sequence[str] = ALL_POLICIES) -> st.SearchStrategy[PolicyChoice]:
    """One of the named policies with parameters that matter for the workload.

    On one server thresh-split has none left for the small jobs, and is not chosen.
    """
    possible = [name for name in names if name != "thresh-split" or workload.servers > 1]
    return st.sampled_from(possible).flatmap(lambda name: policy_named(name, workload))


def policy_named(name: str, workload: Workload) -> st.SearchStrategy[PolicyChoice]:
    """The policy of this name, with parameters that matter for the workload."""
    return _PARAMETRIC[name](workload) if name in _PARAMETRIC else st.just(PolicyChoice(name))


@st.composite
def cases(
    draw: st.DrawFn,
    names: Sequence[str] = ALL_POLICIES,
    max_jobs: int = 40,
    *,
    lattice: bool | None = None,
    patience: bool | None = None,
) -> Case:
    """A workload, a clock and one of the named policies."""
    min_servers = 2 if set(names) == {"thresh-split"} else 1
    workload = draw(workloads(max_jobs, lattice=lattice, patience=patience, min_servers=min_servers))
    clock = "queue" if workload.patience is None else draw(st.sampled_from(CLOCKS))
    return Case(workload, clock, draw(policies(workload, names)))
