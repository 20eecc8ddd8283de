"""Replications of the largest-job decomposition under a policy of the kernel.

A replication is a plain run of its own seed: after a warm-up, snapshots before a thin sample of its arrivals, and from
these, runs of a block with an injected job of each size class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.arrivals import arrival_process
from queue_env.kernel.blocks import ENDLESS, FINISHED, NEED_NUMBERS, SHRINK, TASK, TOO_LONG, Work
from queue_env.kernel.entry_points import drive_point
from queue_env.kernel.layout import GROW, Memory, allocate
from queue_env.kernel.packing import allocate_work, enlarged, pack, unpack
from queue_env.scenarios import Scenario
from queue_env.scoring.strata import Strata
from queue_env.settings import Setting
from queue_env.system import System
from queue_env.workload import Chunk, Stream

__all__ = ["Blocks", "Replication"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_SLOTS = 32  # few, for each run copies them
_POOL = 32_768  # numbers drawn at once
_CHUNK = 4096  # jobs at most in a stretch of a run
_PIECE = 32_768  # jobs at most in a piece of the plain run
_MOST_PRESENT = 2**18
_SLACK = 1e8  # jobs that a run may take beyond
_FIRST_CUT = 1.0  # of the last time, after which a block may be cut
_GENEROUS = 100.0  # times what a job of its size keeps the system busy


class Replication(NamedTuple):
    """What one replication has found.

    Attributes:
        totals: `(classes, columns)` sums over runs of the wanted functions of the numbers of counted jobs above times.
        squares: `(classes, columns)` sums of their squares.
        counts: `(classes,)` runs.
        jobs: `(classes,)` jobs simulated in runs.
        plain: jobs of the plain run.
    """

    totals: FloatArray
    squares: FloatArray
    counts: IntArray
    jobs: IntArray
    plain: int


@dataclass(frozen=True)
class Blocks:
    """Blocks of one policy on one scenario.

    Attributes:
        scenario: the model.
        setting: the policy.
        strata: classes of the injected size.
        times: `(times,)` increasing, >= 0, at which the tail is wanted.
        level: b; a block ends when the number present falls from b+1 to b.
        warmup: arrivals of a plain run before the first snapshot can be.
        segment: arrivals over which the snapshots of a replication spread.
        snapshots: of a replication.
        columns: `(times, columns)`: what is wanted are these linear functions of the tail at the times.
    """

    scenario: Scenario
    setting: Setting
    strata: Strata
    times: FloatArray
    level: int
    warmup: int
    segment: int
    snapshots: int
    columns: FloatArray

    def replicate(self, seed: np.random.SeedSequence, counts: IntArray) -> Replication:
        """Make one replication.

        Args:
            seed: of this replication; the result is a function of it.
            counts: `(classes,)` runs of each class, >= 1.

        Raises:
            ValueError: the system is not stable under the policy, or blocks do not end.
        """
        plain_seed, run_seed = seed.spawn(2)
        rng = np.random.default_rng(run_seed)
        memory, states, gaps = self._snapshots(self.scenario.stream(plain_seed), rng)
        tasks, classes = self._tasks(rng, counts, gaps)
        above = self._run(memory, states, tasks, rng)
        order = np.argsort(classes, kind="stable")
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        values = above[order] @ self.columns
        return Replication(
            totals=np.add.reduceat(values, starts, axis=0),
            squares=np.add.reduceat(values * values, starts, axis=0),
            counts=counts.copy(),
            jobs=np.add.reduceat(tasks["jobs"][order], starts),
            plain=self.warmup + self.segment,
        )

    @property
    def probabilities(self) -> FloatArray:
        """P[S in class], shape (classes,)."""
        return self.strata.probabilities

    def expected_jobs(self) -> FloatArray:
        """A guess of the jobs that a run of each class takes, shape (classes,)."""
        sizes = self.strata.draw(np.arange(len(self.strata)), np.full(len(self.strata), 0.5))
        busy = np.minimum(sizes / min(self.scenario.spare, 1.0), 2 * self.times[-1])
        return np.asarray(1 + self.scenario.arrival_rate * busy)

    # ---- the plain run -------------------------------------------------------------------------------

    def _snapshots(self, stream: Stream, rng: np.random.Generator) -> tuple[Memory, list[FloatArray], FloatArray]:
        """Return the memory that the states are of, states just after an arrival, and the gaps to the next ones."""
        system = System(self.setting, counted=(0, ENDLESS), relative=True, slots=_SLOTS)
        system.memory.system["level"] = self.level
        spacing = self.segment // self.snapshots
        places = self.warmup + spacing * np.arange(self.snapshots) + rng.integers(spacing, size=self.snapshots)
        done, states, gaps = 0, [], np.empty(self.snapshots)
        gap = stream.take("arrivals", 1)
        for i, place in enumerate(places.tolist()):
            while done < place:
                count = min(place - done, _PIECE)
                later = np.concatenate([gap, stream.take("arrivals", count)])
                system.feed(Chunk(np.cumsum(later[:-1]), stream.take("sizes", count), None))
                done, gap = done + count, later[-1:]
                self._check_present(system, done)
            states.append((len(system.memory.jobs), pack(system.memory)))
            gaps[i] = gap[0]
        if system.memory.system["counted_from"][0] == 0:
            raise ValueError(
                f"policy {self.setting.policy.label}: the number present has not once fallen from {self.level + 1} to "
                f"{self.level} in {done} arrivals; allowed: a policy under which it does, or a higher level"
            )
        memory = system.memory._replace(marks=self.times.copy(), above=np.zeros(len(self.times) + 1))
        return memory, self._same_slots(states, memory), gaps

    def _check_present(self, system: System, arrived: int) -> None:
        present = int(system.memory.system["number"][0])
        if present > _MOST_PRESENT:
            raise ValueError(
                f"policy {self.setting.policy.label}: {present} jobs are present after {arrived} arrivals; allowed: a "
                "policy under which the system is stable"
            )

    def _same_slots(self, states: list[tuple[int, FloatArray]], memory: Memory) -> list[FloatArray]:
        same = []
        for slots, state in states:
            while slots < len(memory.jobs):
                state, slots = enlarged(state, _like(memory, slots)), 2 * slots
            same.append(state)
        return same

    # ---- the runs ------------------------------------------------------------------------------------

    def _tasks(self, rng: np.random.Generator, counts: IntArray, gaps: FloatArray) -> tuple[NDArray[np.void], IntArray]:
        """Return the tasks in the order of their snapshots, and the class of each.

        Within a class the sizes are spread evenly (one in each of so many equal parts of its probability).
        """
        classes = np.repeat(np.arange(len(counts)), counts)
        within = np.concatenate([np.arange(count) for count in counts.tolist()])
        uniforms = (within + rng.random(len(classes))) / counts[classes]
        tasks = np.zeros(len(classes), TASK)
        tasks["size"] = self.strata.draw(classes, uniforms)
        tasks["first_cut"] = _FIRST_CUT * self.times[-1]
        # Every snapshot is used as often as every other, give or take one, whatever the class.
        use = rng.permutation(len(gaps))
        tasks["snapshot"] = use[rng.permutation(len(classes)) % len(gaps)]
        tasks["gap"] = gaps[tasks["snapshot"]]
        busy = self.scenario.arrival_rate * tasks["size"] / min(self.scenario.spare, 1.0)
        tasks["most"] = np.minimum(_GENEROUS * busy + _SLACK, 2.0**62)
        order = np.argsort(tasks["snapshot"], kind="stable")
        return tasks[order], classes[order]

    def _run(
        self, memory: Memory, states: list[FloatArray], tasks: NDArray[np.void], rng: np.random.Generator
    ) -> FloatArray:
        """Run the tasks, which get their numbers of jobs; returns `(tasks, times)` counted jobs above each time."""
        user = self.setting.policy.user
        drive = drive_point(self.setting.kernel["family"], None if user is None else user.function)
        work = allocate_work(tasks, len(self.times), _POOL, _CHUNK, np.array(states))
        own = work.buffer
        base = unpack(own, memory)
        memory = base
        arrivals = arrival_process(self.scenario.arrivals, self.scenario.arrival_rate)
        status = NEED_NUMBERS
        while status != FINISHED:
            if status == GROW:
                memory, buffer = _grown(memory, work.buffer)
                work = work._replace(buffer=buffer)
            elif status == SHRINK:
                memory, work = base, work._replace(buffer=own)
            elif status == NEED_NUMBERS:
                work.gap_pool[:] = arrivals.gaps(rng, _POOL)
                work.size_pool[:] = self.scenario.sizes.sample(rng, _POOL)
                work.coin_pool[:] = rng.random(_POOL)
                for name in ("gap_at", "size_at", "coin_at"):
                    work.drive[name] = 0
            else:
                self._refuse(status, work)
            status = drive(memory, work)
            if len(memory.jobs) > _MOST_PRESENT:
                self._refuse(TOO_LONG, work)
        # found[k] counts the jobs that are above exactly k of the times.
        return np.cumsum(work.found[:, ::-1], axis=1)[:, ::-1][:, 1:]

    def _refuse(self, status: int, work: Work) -> None:
        label, task = self.setting.policy.label, work.tasks[work.drive["task"][0]]
        if status == TOO_LONG:
            raise ValueError(
                f"policy {label}: a block that holds a job of size {task['size']:.4g} has not ended within "
                f"{int(task['most'])} jobs, or with {_MOST_PRESENT} present; allowed: a policy under which it does"
            )
        raise ValueError(f"policy {label}: its rates or indices are NaN or not allowed")


def _like(memory: Memory, slots: int) -> Memory:
    return allocate(slots, parameters=memory.parameters, marks=memory.marks)


def _grown(memory: Memory, buffer: FloatArray) -> tuple[Memory, FloatArray]:
    """Return both with twice the slots."""
    larger = enlarged(buffer, memory)
    return unpack(larger, _like(memory, 2 * len(memory.jobs))), larger
