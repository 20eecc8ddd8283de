"""How an episode may start other than empty: `reset(options=...)`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from queue_env.config import EnvConfig
from queue_env.distributions.checks import finite, refuse
from queue_env.jobs_to_come import giant_columns
from queue_env.kernel.env_classes_events import put_class
from queue_env.kernel.env_classes_layout import Classes
from queue_env.kernel.env_events import put
from queue_env.kernel.env_layout import BY_ARRIVAL, GIANT_FACTOR, GIANT_WEIGHT, Batch
from queue_env.snapshot import Snapshot, check_snapshot
from queue_env.workload import Workload

__all__ = ["Start", "new_seed", "put_jobs", "read_options"]

_SEED_WORDS = 4
_ROUNDING = 1e-9  # an age may be short of the attained service by this part of the size


def new_seed(rng: np.random.Generator) -> np.random.SeedSequence:
    """Draw the seed of a stream of jobs from an environment's generator."""
    return np.random.SeedSequence(rng.integers(2**32, size=_SEED_WORDS).tolist())


@dataclass(frozen=True)
class InitialJob:
    """A job that is there at the start.

    Attributes:
        size: original size.
        remaining: what is left of it.
        age: time since its arrival.
        patience: what is left of its patience.
        anchor: whether it has the anchor's role.
    """

    size: float
    remaining: float
    age: float
    patience: float
    anchor: bool


@dataclass(frozen=True)
class Start:
    """How an episode starts.

    Attributes:
        workload: the jobs to come, or None for the stream.
        snapshot: the state to start from, or None.
        jobs: jobs present besides, oldest first.
        job: the job that arrives just then, or None.
    """

    workload: Workload | None = None
    snapshot: Snapshot | None = None
    jobs: tuple[InitialJob, ...] = ()
    job: InitialJob | None = None


def read_options(config: EnvConfig, memory: Batch, options: Mapping[str, Any] | None) -> Start | None:
    """Read the options of `reset`.

    Args:
        config: the environment's arguments.
        memory: its memory, for its capacity.
        options: any of `workload`, `snapshot`, `jobs` and `job`, as `QueueEnv` describes them.

    Returns:
        How to start, or None where the options ask for nothing.

    Raises:
        ValueError: an option is unknown, or its value not allowed.
    """
    if not isinstance(options, Mapping | None):
        refuse("reset", "options", "a mapping, or None", options)
    given = options or {}
    for name in given:
        if name not in ("workload", "snapshot", "jobs", "job"):
            refuse("reset", "options", "among workload, snapshot, jobs, job", name)
    if not given:
        return None
    if "snapshot" in given and ("jobs" in given or "workload" in given):
        refuse("reset", "options", "a snapshot without jobs or workload, which are in it", list(given))
    jobs = [_read_job(config, f"jobs[{i}]", job) for i, job in enumerate(_listed(given.get("jobs", ())))]
    if sum(job.anchor for job in jobs) > 1:
        refuse("reset", "options['jobs']", "with one anchor at most", given["jobs"])
    snapshot = check_snapshot(config, given["snapshot"]) if "snapshot" in given else None
    present = len(jobs) + ("job" in given) + (0 if snapshot is None else len(snapshot.jobs))
    if present > memory.jobs.shape[1]:
        refuse("reset", "number of jobs in options", f"at most the capacity {memory.jobs.shape[1]}", present)
    return Start(
        workload=_read_workload(config, given["workload"]) if "workload" in given else None,
        snapshot=snapshot,
        jobs=tuple(sorted(jobs, key=lambda job: -job.age)),
        job=_read_job(config, "job", given["job"]) if "job" in given else None,
    )


def put_jobs(config: EnvConfig, memory: Batch, classes: Classes | None, b: int, start: Start) -> None:
    """Put the jobs of a start into system b, which has heaps if it is one of two classes."""
    anchor = -1
    for job in (*start.jobs, *((start.job,) if start.job is not None else ())):
        numbers = (b, job.size, job.remaining, job.age, job.patience)
        if classes is not None:
            rank = float(config.scenario.sizes.cdf(job.size))
            put_class(memory.setup, memory.systems, memory.jobs, memory.records, *classes, *numbers, rank)
            continue
        slot = put(memory.setup, memory.systems, memory.jobs, memory.orders, memory.records, *numbers)
        anchor = slot if job.anchor else anchor
    if start.jobs and classes is None:
        # Without a word on it, the role is where it would have gone: to the largest original size.
        memory.systems[b]["anchor"] = anchor if anchor >= 0 else _largest(memory, b)
    if config.episode == "big-job" and start.job is not None:
        column = giant_columns(config, np.array([start.job.size]))[:, 0]
        system = memory.systems[b]
        system["weight"], system["factor"] = column[GIANT_WEIGHT], column[GIANT_FACTOR]
        system["largest_allowed"] = start.job.size


def _largest(memory: Batch, b: int) -> int:
    slots = memory.orders[b, BY_ARRIVAL, : memory.systems[b]["number"]]
    return int(slots[np.argmax(memory.jobs[b]["size"][slots])])


def _listed(jobs: Any) -> Sequence[Any]:
    if isinstance(jobs, str | Mapping) or not isinstance(jobs, Sequence):
        refuse("reset", "options['jobs']", "a list of mappings", jobs)
    return jobs


def _read_workload(config: EnvConfig, workload: object) -> Workload:
    if not isinstance(workload, Workload):
        refuse("reset", "options['workload']", "a queue_env.Workload", workload)
    if config.episode == "big-job":
        refuse("reset", "options['workload']", "absent in big-job episodes, which draw their jobs", workload)
    if workload.patience is not None and config.scenario.patience is None:
        refuse("reset", "patience of options['workload']", "None, for the scenario has none", workload.patience)
    return workload


def _read_job(config: EnvConfig, name: str, job: object) -> InitialJob:
    label = f"options[{name!r}]"
    if not isinstance(job, Mapping) or "size" not in job:
        refuse("reset", label, "a mapping with the key 'size'", job)
    known = ("size", "patience") if name == "job" else ("size", "remaining", "age", "patience", "anchor")
    for key in job:
        if key not in known:
            refuse("reset", f"keys of {label}", f"among {', '.join(known)}", key)
    size = _number(label, "size", job["size"])
    if size <= 0:
        refuse("reset", f"size of {label}", "above 0", size)
    if name == "job" and config.episode == "big-job":
        _check_big(config, label, size)
    remaining = _number(label, "remaining", job.get("remaining", size))
    if not 0 < remaining <= size:
        refuse("reset", f"remaining of {label}", f"above 0, at most the size {size:g}", remaining)
    attained = size - remaining
    age = _number(label, "age", job.get("age", attained))
    if age < 0:
        refuse("reset", f"age of {label}", "at least 0", age)
    if age < attained - _ROUNDING * size:
        refuse("reset", f"age of {label}", f"at least {attained:g}, the service the job has had at rates up to 1", age)
    anchor = job.get("anchor", False)
    if not isinstance(anchor, bool | np.bool_):
        refuse("reset", f"anchor of {label}", "True or False", anchor)
    return InitialJob(size, remaining, age, _patience(config, label, job.get("patience", math.inf)), bool(anchor))


def _patience(config: EnvConfig, label: str, value: object) -> float:
    if isinstance(value, float | np.floating) and value == math.inf:
        return math.inf
    if config.scenario.patience is None:
        refuse("reset", f"patience of {label}", "absent, for the scenario has none", value)
    patience = _number(label, "patience", value)
    if patience < 0:
        refuse("reset", f"patience of {label}", "at least 0", patience)
    return patience


def _check_big(config: EnvConfig, label: str, size: float) -> None:
    """Refuse a first size of a big-job episode that never occurs: all its costs would have the weight zero."""
    if giant_columns(config, np.array([size]))[GIANT_WEIGHT, 0] > 0:
        return
    least, most = config.scenario.sizes.support
    refuse("reset", f"size of {label}", f"of positive density in the law of sizes, {least:g} to {most:g}", size)


def _number(label: str, key: str, value: object) -> float:
    return finite("reset", f"{key} of {label}", value)
