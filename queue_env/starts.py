"""How an episode may start other than empty: `reset(options=...)`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from queue_env.config import EnvConfig
from queue_env.distributions.checks import refuse
from queue_env.jobs_to_come import giant_columns
from queue_env.kernel.env_events import put
from queue_env.kernel.env_layout import BY_ARRIVAL, GIANT_FACTOR, GIANT_WEIGHT, Batch
from queue_env.snapshot import Snapshot, check_snapshot
from queue_env.workload import Workload

__all__ = ["Start", "put_jobs", "read_options"]


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
        options: any of `workload`, `snapshot`, `jobs` and `job`, as `QueueEnv` describes them; `reset_mask` is of the
            vector environment, and passed over.

    Returns:
        How to start, or None where the options ask for nothing.

    Raises:
        ValueError: an option is unknown, or its value not allowed.
    """
    if not isinstance(options, Mapping | None):
        refuse("reset", "options", "a mapping, or None", options)
    given = {name: value for name, value in (options or {}).items() if name != "reset_mask"}
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


def put_jobs(config: EnvConfig, memory: Batch, b: int, start: Start) -> None:
    """Put the jobs of a start into system b."""
    arrays = (memory.setup, memory.systems, memory.jobs, memory.orders, memory.records)
    anchor = -1
    for job in (*start.jobs, *((start.job,) if start.job is not None else ())):
        slot = put(*arrays, b, job.size, job.remaining, job.age, job.patience)
        anchor = slot if job.anchor else anchor
    if start.jobs:
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
    size = _number(label, "size", job["size"], 0.0, math.inf)
    remaining = _number(label, "remaining", job.get("remaining", size), 0.0, size)
    age = job.get("age", 0.0)
    if age != 0.0:
        age = _number(label, "age", age, 0.0, math.inf)
    patience = job.get("patience", math.inf)
    if patience != math.inf:
        if config.scenario.patience is None:
            refuse("reset", f"patience of {label}", "absent, for the scenario has none", patience)
        patience = _number(label, "patience", patience, 0.0, math.inf)
    return InitialJob(size, remaining, float(age), float(patience), bool(job.get("anchor", False)))


def _number(label: str, key: str, value: Any, low: float, high: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not low < number <= high or number == math.inf:
        refuse(
            "reset",
            f"{key} of {label}",
            f"a number above {low:g}" + (f", at most {high:g}" if high < math.inf else ""),
            value,
        )
    return number
