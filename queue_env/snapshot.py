"""The whole state of one system between two decisions, to come back to or to go on from with other jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.config import EnvConfig
from queue_env.distributions.checks import refuse
from queue_env.jobs_to_come import JobsToCome
from queue_env.kernel.env_classes_events import rebuild
from queue_env.kernel.env_classes_layout import Classes
from queue_env.kernel.env_layout import BY_ARRIVAL, BY_REMAINING, SERVED, TABLE, Batch
from queue_env.kernel.layout import PRESENT, UNKNOWN, Array

__all__ = ["Snapshot", "put_back", "take_snapshot"]


@dataclass(frozen=True, repr=False)
class Snapshot:
    """The state of one system; it can be pickled, and put back into any environment with the same scenario and episode.

    Attributes:
        origin: what it must agree with where it is put back.
        system: `(1,)` scalars.
        jobs: `(N,)` the jobs present, by job number.
        shown: job numbers in the rows of the last observation.
        anchor: place of the anchor among the jobs, or -1.
        outcome: results of the last step, and costs of the episode so far.
        chunk, giants: jobs to come that are in memory.
        source: where the source of jobs is.
        records: of all jobs so far; empty where none are kept.
        classes: `(1,)` and `(N,)`, what a system of two classes has besides; else None.
    """

    origin: dict[str, Any]
    system: Array
    jobs: Array
    shown: NDArray[np.int64]
    anchor: int
    outcome: NDArray[np.float64]
    chunk: Array
    giants: NDArray[np.float64]
    source: dict[str, Any]
    records: Array
    classes: tuple[Array, Array] | None

    def __repr__(self) -> str:
        over = ", over" if self.over else ""
        return f"Snapshot({self.origin['scenario']['name']}, time {self.time:g}, jobs present {len(self.jobs)}{over})"

    @property
    def over(self) -> bool:
        """Whether the episode is over, so that there is nothing to go on from."""
        return bool(self.system["done"][0])

    @property
    def time(self) -> float:
        """The episode's time."""
        return float(self.system["origin"][0] + self.system["now"][0])

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Original sizes of the jobs present, oldest first."""
        return np.array(self.jobs["size"])

    @property
    def ages(self) -> NDArray[np.float64]:
        """Ages of the jobs present, oldest first."""
        return np.array(self.system["now"][0] - self.jobs["arrival"])

    @property
    def remaining(self) -> NDArray[np.float64]:
        """Remaining sizes of the jobs present, oldest first."""
        return np.array(self.jobs["remaining"])


def origin_of(config: EnvConfig) -> dict[str, Any]:
    """Return what two environments must have in common to exchange snapshots."""
    return {
        "scenario": config.scenario.to_dict(),
        "episode": config.episode,
        "horizon": config.horizon if config.episode == "horizon" else None,
        "big_sizes": str(config.big_sizes),
        "decision_interval": config.decision_interval,
        "reward": [term.name for term in config.terms],
        "tail_range": config.tail_range,
    }


def take_snapshot(config: EnvConfig, memory: Batch, classes: Classes | None, source: JobsToCome, b: int) -> Snapshot:
    """Copy the state of system b, which has been settled."""
    system = memory.systems[b : b + 1].copy()
    orders, jobs = memory.orders[b], memory.jobs[b]
    slots = orders[BY_ARRIVAL, : system["number"][0]]
    shown = jobs["number"][orders[TABLE, : system["shown"][0]]]
    return Snapshot(
        origin=origin_of(config),
        system=system,
        jobs=jobs[slots].copy(),
        shown=shown.copy(),
        anchor=int(np.flatnonzero(slots == system["anchor"][0])[0]) if len(slots) and classes is None else -1,
        outcome=memory.outcomes[b].copy(),
        chunk=memory.chunks[b].copy(),
        giants=memory.giants[b].copy(),
        source=source.state(),
        records=memory.records[b, : system["arrived"][0]].copy(),
        classes=None if classes is None else (classes.states[b : b + 1].copy(), classes.standings[b, slots].copy()),
    )


def check_snapshot(config: EnvConfig, snapshot: object) -> Snapshot:
    """Return what is a snapshot that can be put back.

    Raises:
        ValueError: it is none, of an episode that is over, or of another kind of environment.
    """
    if not isinstance(snapshot, Snapshot):
        refuse("reset", "options['snapshot']", "a Snapshot, as snapshot() gives it", snapshot)
    for name, allowed in origin_of(config).items():
        if snapshot.origin[name] != allowed:
            refuse(
                "reset", f"{name} of options['snapshot']", f"{allowed}, that of the environment", snapshot.origin[name]
            )
    if snapshot.over:
        refuse("reset", "options['snapshot']", "of an episode that is not over", snapshot)
    return snapshot


def put_back(
    config: EnvConfig, snapshot: Snapshot, memory: Batch, classes: Classes | None, b: int, *, with_jobs_to_come: bool
) -> None:
    """Set system b to a snapshot's state.

    Args:
        config: the environment's arguments.
        snapshot: the state.
        memory: of all systems.
        classes: their heaps, if they are of two classes.
        b: which one.
        with_jobs_to_come: whether the jobs to come that are in memory are the snapshot's too.
    """
    s, orders, jobs = memory.systems[b], memory.orders[b], memory.jobs[b]
    keep = ("next", "filled", "next_size", "sizes_filled", "next_giant", "giants_filled", "last_chunk", "given")
    kept = {name: s[name] for name in keep}
    number, capacity = len(snapshot.jobs), len(jobs)
    memory.systems[b] = snapshot.system[0]
    if with_jobs_to_come:
        memory.chunks[b], memory.giants[b] = snapshot.chunk, snapshot.giants
    else:
        for name, value in kept.items():
            s[name] = value
        # The next job comes a whole gap after now.
        s["last_arrival"] = s["base"] = s["now"]
    memory.outcomes[b] = snapshot.outcome
    jobs[:number] = snapshot.jobs
    orders[BY_ARRIVAL] = np.arange(capacity)
    orders[BY_REMAINING, :number] = np.lexsort((snapshot.jobs["number"], snapshot.jobs["remaining"]))
    served = np.flatnonzero(snapshot.jobs["rate"] > 0)
    orders[SERVED, : len(served)] = served
    orders[TABLE, : len(snapshot.shown)] = np.searchsorted(snapshot.jobs["number"], snapshot.shown)
    s["shown"] = len(snapshot.shown)
    # A state of two classes has no anchor: the role is where it would have gone.
    s["anchor"] = snapshot.anchor if snapshot.anchor >= 0 or number == 0 else np.argmax(snapshot.jobs["size"])
    if classes is not None:
        _put_classes(config, snapshot, memory, classes, b)
    if memory.records.shape[1] > 0:
        _put_records(snapshot, memory.records[b])


def _put_classes(config: EnvConfig, snapshot: Snapshot, memory: Batch, classes: Classes, b: int) -> None:
    """Continue a snapshot in two classes; of a state that has other ones or none, with nobody in the first."""
    by_service = config.size_knowledge == "unknown"
    foreign = snapshot.classes is None or bool(snapshot.classes[0]["by_service"][0]) != by_service
    here = classes.standings[b][: len(snapshot.jobs)]
    if snapshot.classes is not None:
        classes.states[b], here[...] = snapshot.classes[0][0], snapshot.classes[1]
    else:
        here["rank"] = config.scenario.sizes.cdf(snapshot.sizes)
    rebuild(memory.setup, memory.systems, memory.jobs, *classes, b, foreign)


def _put_records(snapshot: Snapshot, records: Array) -> None:
    """Continue a snapshot's records; where it has none, only the jobs present are known."""
    if len(snapshot.records) > 0:
        records[: len(snapshot.records)] = snapshot.records
        return
    for name in ("arrival_time", "size", "start_time", "departure_time", "waiting_time"):
        records[name][: snapshot.system["arrived"][0]] = np.nan
    records["outcome"][: snapshot.system["arrived"][0]] = UNKNOWN
    here = snapshot.jobs["number"]
    records["arrival_time"][here] = snapshot.system["origin"][0] + snapshot.jobs["arrival"]
    records["size"][here] = snapshot.jobs["size"]
    records["outcome"][here] = PRESENT
