"""Jobs made up at random, how an environment would show them, and the laws of the policies, one job after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np

from queue_env.config import EnvConfig, make_config
from queue_env.observation import SYSTEM_FEATURES, ObservationLayout

ARGUMENTS: dict[str, Any] = {
    "overrides": None,
    "action": "allocation",
    "observation": "dict",
    "reward": "mean",
    "reward_scale": 1.0,
    "tail_range": (1.0, 1e4),
    "episode": "jobs",
    "jobs": 1000,
    "horizon": 1000.0,
    "big_sizes": None,
    "slots": None,
    "capacity": None,
    "decision_interval": None,
    "work_conserving": True,
    "symmetric_actions": False,
    "size_knowledge": "known",
    "rules": None,
    "allocation_in_info": False,
    "records": False,
    "render_mode": None,
}


def configured(servers: int = 2, **arguments: Any) -> EnvConfig:
    """Arguments of an environment with Pareto sizes of mean 2 and spare capacity 0.6."""
    fields = {"servers": servers, "load": 1 - 0.6 / servers, "sizes": {"law": "pareto", "alpha": 1.5, "mean": 2.0}}
    return make_config(fields | (arguments.pop("fields", {})), **(ARGUMENTS | arguments))


class StubEnv(gymnasium.Env[Any, Any]):
    """All of an environment that an agent asks for."""

    def __init__(self, config: EnvConfig) -> None:
        self.config, self.layout, self.actions = config, config.layout, config.actions
        self.observation_space, self.action_space = self.layout.space(), self.actions.space()


def stub(servers: int = 2, **arguments: Any) -> StubEnv:
    """An environment that only knows its arguments."""
    return StubEnv(configured(servers, **arguments))


@dataclass
class Job:
    """A job that is present."""

    number: int
    arrival: float
    size: float
    remaining: float
    served: bool = False


@dataclass
class Crowd:
    """The jobs present, in order of arrival, at time 100, and who has the anchor's role."""

    jobs: list[Job]
    anchor: int = 0  # place in `jobs`

    @property
    def in_order(self) -> list[Job]:
        """The jobs in SRPT order."""
        return sorted(self.jobs, key=lambda job: (job.remaining, job.number))


def crowd(rng: np.random.Generator, number: int, servers: int, ties: bool = True) -> Crowd:
    """Jobs of different ages, up to `servers` of them in service; with ties, sizes are small whole numbers."""
    arrivals = np.sort(rng.choice(9000, number, replace=False)) / 100
    sizes = rng.integers(1, 6, number).astype(float) if ties else rng.pareto(1.5, number) + 0.1
    left = rng.choice([0.25, 0.5, 1.0, 1.0], number) if ties else rng.uniform(0.1, 1.0, number)
    jobs = [Job(7 + 2 * i, float(arrivals[i]), float(sizes[i]), float(sizes[i] * left[i])) for i in range(number)]
    for i in rng.permutation(number)[: rng.integers(0, servers + 1)]:
        jobs[i].served = True
    return Crowd(jobs, int(rng.integers(number)) if number else -1)


# ---- as an environment shows them ----------------------------------------------------------------


def rows(layout: ObservationLayout, present: Crowd) -> list[Job]:
    """The jobs in the table of an observation, row by row."""
    jobs = present.jobs
    order = present.in_order if layout.known else jobs
    if layout.kind == "compact":
        return [jobs[present.anchor], *order[: layout.servers + 1]] if jobs else []
    if len(jobs) <= layout.slots:
        return order
    chosen = {job.number for job in (*jobs[: layout.servers], jobs[-1])}
    if layout.known:
        chosen |= {jobs[present.anchor].number, _largest(present).number}
    for job in order if layout.known else reversed(jobs):
        if len(chosen) == layout.slots:
            break
        chosen.add(job.number)
    return [job for job in order if job.number in chosen]


def observation(layout: ObservationLayout, present: Sequence[Crowd]) -> Any:
    """The observations of a batch."""
    values = np.zeros((len(present), layout.entries), np.float64 if layout.kind == "dict" else np.float32)
    for i, one in enumerate(present):
        anchor = one.jobs[one.anchor] if one.jobs else None
        work = sum(job.remaining for job in one.jobs)
        system = (len(one.jobs), work, anchor.size if anchor else 0.0, 1.0, 0.6)
        numbers = [_written(layout, *pair) for pair in zip(SYSTEM_FEATURES, system, strict=True)]
        for job in rows(layout, one):
            features = {
                "remaining": job.remaining,
                "size": job.size,
                "age": 100 - job.arrival,
                "attained": job.size - job.remaining,
                "patience": 1.0,
                "anchor": job is anchor,
                "largest": job is _largest(one),
                "served": job.served,
                "present": True,
            }
            numbers += [_written(layout, feature, features[feature.name]) for feature in layout.job_features]
        values[i, : len(numbers)] = numbers
    return layout.view(values)


def _written(layout: ObservationLayout, feature: Any, value: float) -> float:
    if layout.kind == "dict" or feature.unit in ("0/1", "servers"):
        return float(value)
    return float(np.log1p(value if feature.unit == "jobs" else value / layout.unit))


# ---- laws ----------------------------------------------------------------------------------------


def _largest(present: Crowd) -> Job:
    return max(present.jobs, key=lambda job: (job.size, -job.number))


def _best(present: Crowd, servers: int, key: Callable[[Job], Any]) -> dict[int, float]:
    return {job.number: 1.0 for job in sorted(present.jobs, key=key)[:servers]}


def _apart(present: Crowd, servers: int, job: Job, rate: float) -> dict[int, float]:
    others = [other for other in present.in_order if other is not job]
    rates = {other.number: 1.0 for other in others[: servers - 1]}
    if len(others) >= servers:
        rates[others[servers - 1].number] = 1.0 - rate
    return rates | {job.number: rate}


def lawful_rates(name: str, present: Crowd, servers: int, spare: float = 0.6, d: float = 2.5) -> dict[int, float]:
    """What a policy gives to each job, by number; jobs that get nothing may be left out."""
    jobs = present.jobs
    if not jobs:
        return {}
    if name == "ps":
        return {job.number: min(1.0, servers / len(jobs)) for job in jobs}
    if name == "thresh-split":
        large, small = [job for job in jobs if job.size > d], [job for job in present.in_order if job.size <= d]
        return {job.number: 1.0 for job in (*large[:1], *small[: servers - 1])}
    if len(jobs) <= servers:
        return {job.number: 1.0 for job in jobs}
    if name == "split":
        return _apart(present, servers, _largest(present), 1.0)
    if name == "dynasplit":
        anchor = jobs[present.anchor]
        rate = min(1.0, spare - spare / (2 + np.log1p(anchor.size)))
        return _apart(present, servers, anchor, float(rate))
    keys: dict[str, Callable[[Job], Any]] = {
        "fcfs": lambda job: job.number,
        "lcfs": lambda job: (not job.served, -job.number),
        "plcfs": lambda job: -job.number,
        "srpt": lambda job: (job.remaining, job.number),
        "psjf": lambda job: (job.size, job.number),
        "sjf": lambda job: (not job.served, job.size, job.number),
    }
    return _best(present, servers, keys[name])


def lawful_rows(name: str, layout: ObservationLayout, present: Sequence[Crowd]) -> np.ndarray[Any, Any]:
    """The lawful rates by row of the table, shape (B, rows)."""
    found = np.zeros((len(present), layout.rows))
    for i, one in enumerate(present):
        rates = lawful_rates(name, one, layout.servers)
        for row, job in enumerate(rows(layout, one)):
            found[i, row] = rates.get(job.number, 0.0)
    return found


def rates_of_anchor_action(present: Crowd, servers: int, rate: float) -> dict[int, float]:
    """What the action "anchor" gives to each job."""
    if len(present.jobs) <= servers:
        return {job.number: 1.0 for job in present.jobs}
    return _apart(present, servers, present.jobs[present.anchor], rate)


def shown_by(layout: ObservationLayout, present: Sequence[Crowd]) -> SimpleNamespace:
    """A batch with its observation, and the observation of its first alone."""
    whole = observation(layout, present)
    first = {name: part[0] for name, part in whole.items()} if layout.kind == "dict" else whole[0]
    return SimpleNamespace(whole=whole, first=first)
