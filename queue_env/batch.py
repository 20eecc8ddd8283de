"""B systems that wait for decisions: the Python side of the kernel, without any Gymnasium."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env import action, observation
from queue_env.config import EPISODES, EnvConfig
from queue_env.crew import Crew
from queue_env.distributions.checks import refuse
from queue_env.jobs_to_come import CHUNK, GIANTS, JobsToCome
from queue_env.kernel import env_layout as layout
from queue_env.kernel.env_classes_events import empty_classes, settle, step_classes
from queue_env.kernel.env_classes_layout import allocate_classes
from queue_env.kernel.env_events import empty, step
from queue_env.kernel.layout import NO_CLOCK, Ints
from queue_env.kernel.turns_layout import divide, leave, stay
from queue_env.settings import Setting
from queue_env.snapshot import Snapshot, put_back, take_snapshot
from queue_env.starts import Start, put_jobs
from queue_env.system import CLOCK_CODES

__all__ = ["BatchOfSystems"]

_RULE_CODES = {
    "fcfs": layout.FCFS,
    "lcfs": layout.LCFS,
    "plcfs": layout.PLCFS,
    "srpt": layout.SRPT,
    "psjf": layout.PSJF,
    "sjf": layout.SJF,
    "ps": layout.PS,
    "las": layout.LAS,
    "split": layout.LARGEST_FIRST,
    "thresh-split": layout.LARGE_APART,
    "dynasplit": layout.MARGIN,
    "backlog-split": layout.BELOW_BACKLOG,
    "two-class": layout.TWO_CLASS,
}
_NEVER = 2**62


class BatchOfSystems:
    """B systems with the same arguments, each with jobs of its own.

    Args:
        config: the environment's arguments.
        count: number of systems B.
        autoreset: `NEXT_STEP`, `SAME_STEP` or `DISABLED` of the kernel.
        most_steps: steps after which an episode is cut, or None.
        threads: that share the systems; the results do not depend on it.
    """

    def __init__(
        self, config: EnvConfig, count: int, autoreset: int, most_steps: int | None = None, threads: int = 1
    ) -> None:
        self.config = config
        self.count = count
        self.threads = threads
        self.memory = _allocate(config, count, autoreset, most_steps, divide(count, threads))
        self.classes = allocate_classes(count, config.capacity, CHUNK) if config.in_classes else None
        self._sources: list[JobsToCome | None] = [None] * count
        self._crew: Crew | None = None

    # ---- episodes --------------------------------------------------------------------------------

    def reset(
        self,
        chosen: Sequence[int],
        seeds: Mapping[int, np.random.SeedSequence],
        start: Start | None = None,
        *,
        new_jobs: Container[int] = (),
    ) -> None:
        """Begin an episode in the chosen systems, and go to its first decision.

        Args:
            chosen: which systems.
            seeds: for those whose jobs are to come from a new stream.
            start: how to start, or None for an empty system.
            new_jobs: those that go on from a snapshot with jobs of their seed, and not with those of the snapshot.
        """
        self._make_room(self.config.capacity)
        systems, memory = self.memory.systems, self.memory
        for b in chosen:
            if b in seeds:
                source = self._sources[b] = JobsToCome(self.config, seeds[b])
                source.open(memory, b)
                source.forget_giants(memory, b)
            else:
                source = self._source(b)
            memory.last_outcomes[b, layout.REASON] = layout.NO_REASON
            if start is not None:
                self._start(b, source, start, with_jobs_to_come=b not in new_jobs)
                continue
            if systems[b]["given"]:
                source.close_workload(memory, b)
            systems[b]["stage"] = layout.RESETTING
            memory.status[b] = layout.NEED_SOURCE
        self._finish(self._go_on(begins=False))

    def _start(self, b: int, source: JobsToCome, start: Start, *, with_jobs_to_come: bool) -> None:
        memory = self.memory
        if start.workload is not None:
            source.give(start.workload)
            source.open(memory, b)
        elif memory.systems[b]["given"]:
            source.close_workload(memory, b)
        if self.classes is None:
            empty(memory.setup, memory.systems, memory.chunks, memory.outcomes, b)
        else:
            setup, systems, chunks = memory.setup, memory.systems, memory.chunks
            empty_classes(setup, systems, chunks, memory.outcomes, memory.jobs, *self.classes, b)
        if start.snapshot is not None:
            if with_jobs_to_come:
                source.restore(start.snapshot.source)
            self._make_room(int(start.snapshot.system["arrived"][0]) + self.config.capacity)
            put_back(self.config, start.snapshot, self.memory, self.classes, b, with_jobs_to_come=with_jobs_to_come)
            self._rank(b)
        put_jobs(self.config, self.memory, self.classes, b, start)
        memory.systems[b]["done"] = 0
        memory.systems[b]["stage"] = layout.STARTING if start.snapshot is None else layout.RESUMING
        if memory.systems[b]["number"] == 0 and self.config.episode == "big-job":
            memory.systems[b]["stage"] = layout.RESETTING
        memory.status[b] = layout.NEED_SOURCE

    def inject(self, snapshots: Mapping[int, Snapshot], sizes: Mapping[int, float]) -> None:
        """Go on from snapshots, each with a next job of a given size; all else that comes is of the systems' streams.

        The next job arrives a whole gap after the snapshot, as if another had just arrived.

        Args:
            snapshots: where each of the chosen systems, which have a seed, is to go on.
            sizes: of the next job in each of them.
        """
        for b, snapshot in snapshots.items():
            source = self._source(b)
            self._start(b, source, Start(snapshot=snapshot), with_jobs_to_come=False)
            source.begin_gap(self.memory, b)
            source.next_size(self.memory, b, sizes[b])
            self._rank(b)
        self._finish(self._go_on(begins=False))

    def _source(self, b: int) -> JobsToCome:
        source = self._sources[b]
        assert source is not None, "the environment gives a seed at the first reset"
        return source

    def seeded(self, b: int) -> bool:
        """Whether a system has a source of jobs."""
        return self._sources[b] is not None

    # ---- steps -----------------------------------------------------------------------------------

    def step(self) -> None:
        """Do what `memory.actions` says, and go to the next decision.

        Raises:
            ValueError: an action is NaN, or no rule; then nothing has been done.
        """
        if self.threads > 1:
            self._call_crew()
        waiting = self._go_on(begins=True)
        if waiting:
            if waiting < 0:
                self._refuse(-1 - waiting)
            self._finish(waiting)

    def _go_on(self, *, begins: bool) -> int:
        if self.classes is None:
            return step(*self.memory, 0, begins)
        return step_classes(*self.memory, *self.classes, 0, begins)

    def _call_crew(self) -> None:
        """See to it that nobody sleeps; who takes long to wake up finds the work done."""
        if self._crew is None or not self._crew.here:
            self._crew = None  # one of another process must be gone before this one's comes
            stay(self.memory.shares)
            go_on: Callable[..., int] = partial(step, *self.memory)
            if self.classes is not None:
                go_on = partial(step_classes, *self.memory, *self.classes)
            parts = [partial(go_on, i, False) for i in range(1, self.threads)]
            self._crew = Crew(parts, partial(leave, self.memory.shares))
        self._crew.wake()

    def _refuse(self, entry: int) -> None:
        b, i = divmod(entry, self.memory.actions.shape[1])
        where = f"action[{b}]" if self.count > 1 else "action"
        if self.config.action == "rule":
            refuse(
                "step", where, f"an integer from 0 to {len(self.config.rules) - 1}", float(self.memory.actions[b, 0])
            )
        refuse("step", f"{where}[{i}]" if self.count == 1 else f"action[{b}, {i}]", "a number, not NaN", np.nan)

    def _finish(self, waiting: int) -> None:
        """Hand in what systems need, until all are at their next decision."""
        while waiting > 0:
            for b in np.flatnonzero(self.memory.status).tolist():
                self._hand_in(b, int(self.memory.status[b]))
            waiting = self._go_on(begins=False)

    def _hand_in(self, b: int, need: int) -> None:
        source, memory = self._source(b), self.memory
        if need == layout.NEED_GIANTS:
            source.fill_giants(memory, b)
        elif need == layout.NEED_SOURCE:
            if memory.systems[b]["given"]:
                source.close_workload(memory, b)
        else:
            source.fill(memory, b, need)
            self._rank(b)
            if self.config.records:
                self._make_room(int(memory.systems[b]["arrived"]) + CHUNK)

    def _rank(self, b: int) -> None:
        """Write P[S <= size] of the sizes in memory, where they matter; of the whole row, so that it rounds alike."""
        if self.classes is not None:
            self.classes.ranks[b] = self.config.scenario.sizes.cdf(self.memory.chunks["size"][b].copy())

    def _make_room(self, jobs: int) -> None:
        """Enlarge the records for so many jobs, and those that may come with an autoreset."""
        records = self.memory.records
        if self.config.records and records.shape[1] < jobs + CHUNK:
            larger = np.zeros((self.count, 2 * (jobs + CHUNK)), layout.RECORD)
            larger[:, : records.shape[1]] = records
            self.close()  # those who hold the smaller ones
            self.memory = self.memory._replace(records=larger)

    # ---- looking in ------------------------------------------------------------------------------

    def records(self, b: int) -> NDArray[np.void]:
        """Return the records of the jobs that have arrived in this episode of system b, by job number."""
        records = self.memory.records[b, : self.memory.systems[b]["arrived"]].copy()
        present = self.present(b)
        records["start_time"][present["number"]] = present["started"]
        return records

    def snapshot(self, b: int) -> Snapshot:
        """Return the state of system b."""
        self.settle(b)
        return take_snapshot(self.config, self.memory, self.classes, self._source(b), b)

    def present(self, b: int) -> NDArray[np.void]:
        """Return the jobs present in system b, by job number, as `JOB` records."""
        self.settle(b)
        system = self.memory.systems[b]
        slots = self.memory.orders[b, layout.BY_ARRIVAL, : system["number"]]
        return np.array(self.memory.jobs[b][slots])

    def settle(self, *systems: int) -> None:
        """Bring what memory says of the jobs present up to date, in these systems; it is so at once but in classes."""
        if self.classes is not None:
            memory = self.memory
            for b in systems:
                settle(memory.setup, memory.systems, memory.jobs, memory.orders, *self.classes, b)

    def close(self) -> None:
        """End the threads."""
        if self._crew is not None:
            self._crew.dismiss()
            self._crew = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_crew": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        # Pickling makes the arrays contiguous, for which the kernel would be compiled anew.
        self.memory = layout.laid_out(self.memory)


# ---- memory ---------------------------------------------------------------------------------------


def _allocate(config: EnvConfig, count: int, autoreset: int, most_steps: int | None, shares: Ints) -> layout.Batch:
    tail = config.tail.table() if config.tail is not None else None
    table = np.zeros((1, 4)) if tail is None else tail.coefficients
    return layout.allocate_batch(
        count,
        config.capacity,
        CHUNK,
        GIANTS if config.episode == "big-job" else 0,
        config.actions.columns,
        config.layout.entries,
        config.observation == "dict",
        config.slots,
        shares,
        setup=_setup(config, autoreset, most_steps, tail),
        terms=_terms(config),
        table=np.ascontiguousarray(table),
        rules=_rules(config.rule_settings),
    )


def _setup(config: EnvConfig, autoreset: int, most_steps: int | None, tail: Any) -> NDArray[np.void]:
    made = config.scenario
    values = {
        "spare": config.spare,
        "unit": config.unit,
        "interval": 0.0 if config.decision_interval is None else config.decision_interval * config.unit,
        "horizon": config.horizon * config.unit if config.episode == "horizon" else np.inf,
        "reward_scale": config.reward_scale,
        "table_low": 0.0 if tail is None else tail.low,
        "table_high": 0.0 if tail is None else tail.high,
        "table_first": 0 if tail is None else tail.first,
        "servers": config.servers,
        "slots": config.slots,
        "features": len(config.layout.job_features),
        "action": action.KINDS[config.action],
        "view": observation.KINDS[config.observation],
        "conserving": config.work_conserving,
        "known": config.size_knowledge == "known",
        "symmetric": config.symmetric_actions,
        "clock": NO_CLOCK if made.patience is None else CLOCK_CODES[made.clock],
        "episode": EPISODES[config.episode],
        "jobs": config.jobs,
        "most_steps": _NEVER if most_steps is None else most_steps,
        "autoreset": autoreset,
        "terms": len(config.terms),
        "recording": config.records,
        "reporting": config.allocation_in_info,
    }
    setup = np.zeros(1, layout.SETUP)
    for name, value in values.items():
        setup[name] = value
    return setup


def _terms(config: EnvConfig) -> NDArray[np.void]:
    terms = np.zeros(len(config.terms), layout.TERM)
    for row, term in zip(terms, config.terms, strict=True):
        row["weight"], row["number"], row["kind"] = term.weight, term.number, term.kind
    return terms


def _rules(settings: Sequence[Setting]) -> NDArray[np.void]:
    rules = np.zeros(len(settings), layout.RULES)
    for row, setting in zip(rules, settings, strict=True):
        name, numbers = setting.policy.name, setting.parameters
        row["kind"] = _RULE_CODES[name]
        if name == "dynasplit":
            row["margin"], row["a"], row["b"] = int(numbers[0]), numbers[1], setting.spare
        elif len(numbers):
            row["a"], row["b"] = (*numbers, 0.0)[:2]
    return rules
