"""Replications of the largest-job decomposition under a policy of the kernel.

A replication is a plain run of its own seed: after a warm-up, snapshots before a thin sample of its arrivals, and from
these, runs of a block with an injected job of each size class.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.arrivals import arrival_process
from queue_env.kernel.blocks import ENDLESS, FINISHED, GO_ON, NEED_NUMBERS, SHRINK, TASK, TOO_LONG, Work
from queue_env.kernel.compact import compact
from queue_env.kernel.entry_points import drive_point
from queue_env.kernel.layout import GROW, RATES, Memory, allocate
from queue_env.kernel.packing import allocate_work, enlarged, pack, unpack
from queue_env.scenarios import Scenario
from queue_env.scoring.replications import Cuts, Replication, make_replication
from queue_env.scoring.strata import Strata, foreseen_time
from queue_env.settings import Setting
from queue_env.system import System
from queue_env.workload import Chunk, Stream

__all__ = ["Blocks", "Pools"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_LEAST_SLOTS, _SPARE_SLOTS = 16, 2.0  # at least, and times the jobs present
_TOO_MANY_SLOTS = 4  # times those that would do
_POOL = 32_768  # random numbers drawn at once
_CHUNK = 4096  # jobs at most in a stretch of a run
_PIECE = 32_768  # jobs at most in a piece of the plain run
_MOST_PRESENT = 2**22
_CHECKS, _CHECKED = 8, 131_072  # streams, and arrivals of each, in which blocks have to end
_CHECK_SEED = 0
_MOST_ALLOCATED = 4096
_SLACK = 1e8  # jobs that a run may take beyond
_GENEROUS = 100.0  # times what a job of its size keeps the system busy


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
        first_cut: how long after the injected job a block may first be cut, in multiples of the last time.
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
    first_cut: float = 3.0

    def replicate(self, seed: np.random.SeedSequence, counts: FloatArray) -> Replication:
        """Make one replication.

        Args:
            seed: of this replication; the result is a function of it.
            counts: `(classes,)` expected runs of each class.

        Raises:
            ValueError: the system is not stable under the policy, or blocks do not end.
        """
        plain_seed, run_seed = copy.deepcopy(seed).spawn(2)  # the same seed gives the same again
        rng = np.random.default_rng(run_seed)
        places = self._draw_places(rng)
        runs = self.strata.draw_runs(rng, counts, self.snapshots)
        tasks = self._tasks(runs.sizes)
        found = np.zeros((len(tasks), len(self.times) + 1))
        pools = self._pools(rng, tasks)
        for i, memory in enumerate(self._snapshots(self.scenario.stream(plain_seed), places)):
            # Others are not the largest of their block, and count for nothing.
            mine = np.flatnonzero((runs.states == i) & (runs.sizes > memory.system["block_largest"][0]))
            if mine.size:
                tasks[mine], found[mine] = self._run(memory, tasks[mine], pools)
        cuts = Cuts(self._cut, tasks["lasts"], tasks["lost"])
        return make_replication(runs, found, self.columns, cuts, tasks["jobs"], counts, self.warmup + self.segment)

    @property
    def probabilities(self) -> FloatArray:
        """P[S in class], shape (classes,)."""
        return self.strata.probabilities

    @property
    def sizes(self) -> FloatArray:
        """The median of each class, shape (classes,)."""
        return self.strata.medians

    def expected_jobs(self) -> FloatArray:
        """A guess of the jobs that a run of each class takes, shape (classes,)."""
        return self.strata.expected_jobs(self.scenario, self._cut)

    def foreseen(self, pace: FloatArray) -> FloatArray:
        """What a run that may be cut adds at a pace, shape (classes, columns); NaN for classes of shorter runs."""
        return self.strata.foreseen(self.scenario, self._cut, self.columns.sum(axis=0), pace)

    @property
    def _cut(self) -> float:
        """How long after the injected job a block may first be cut [time]."""
        return self.first_cut * float(self.times[-1])

    def _draw_places(self, rng: np.random.Generator) -> IntArray:
        """Return before which arrivals of the plain run there are snapshots, shape (snapshots,)."""
        spacing = self.segment // self.snapshots
        return self.warmup + spacing * np.arange(self.snapshots) + rng.integers(spacing, size=self.snapshots)

    # ---- the plain run -------------------------------------------------------------------------------

    def _snapshots(self, stream: Stream, places: IntArray) -> Iterator[Memory]:
        """Yield copies of the system just before arrivals, those of the given numbers."""
        system = self._system()
        done, gap = 0, stream.take("arrivals", 1)
        for place in places.tolist():
            while done < place:
                count = min(place - done, _PIECE)
                later = np.concatenate([gap, stream.take("arrivals", count)])
                system.feed(Chunk(np.cumsum(later[:-1]), stream.take("sizes", count), None))
                done, gap = done + count, later[-1:]
            yield self._just_before(system, float(gap[0]))

    def _just_before(self, system: System, gap: float) -> Memory:
        """Return a copy of the system as it is when the gap has passed, in few slots, for each run copies them."""
        slots = max(_LEAST_SLOTS, int(_SPARE_SLOTS * int(system.memory.system["number"][0])))
        if len(system.memory.jobs) > _TOO_MANY_SLOTS * slots:
            system.memory = compact(system.memory, slots)
        twin = copy.copy(system)
        twin.memory = unpack(pack(system.memory), system.memory)
        state = twin.memory.system
        state["horizon"] = twin.now + gap
        twin.drain()
        state["horizon"], state["draining"] = np.inf, 0
        return twin.memory

    def check(self) -> None:
        """Look at a few streams whether blocks go on ending, before any work is put into replications.

        Raises:
            ValueError: in none of them one has ended in the second half.
        """
        label, began, present = self.setting.policy.label, 0, 0
        for seed in np.random.SeedSequence(_CHECK_SEED).spawn(_CHECKS):
            stream, system = self.scenario.stream(seed), self._system()
            for _ in range(_CHECKED // _PIECE):
                system.feed(stream.chunk(_PIECE))
                self._check_slow(int(system.memory.system["number"][0]))
            state = system.memory.system[0]
            began, present = int(state["counted_from"]), int(state["number"])
            if began > state["arrived"] // 2:
                return
        raise ValueError(
            f"policy {label}: blocks do not end: after {_CHECKED} arrivals {present} jobs are present, and the number "
            f"has not fallen from {self.level + 1} to {self.level} since arrival {began}; allowed: a policy under "
            "which the system is stable, and a level to which the number falls again and again"
        )

    def _check_slow(self, present: int) -> None:
        """Raise ValueError where an allocation, which takes time in proportion to the jobs present, has too many."""
        if self.setting.kernel["family"] == RATES and present > _MOST_ALLOCATED:
            raise ValueError(
                f"policy {self.setting.policy.label}: {present} jobs are present within {_CHECKED} arrivals; allowed: "
                "an allocation under which the system is stable"
            )

    def _system(self) -> System:
        system = System(self.setting, counted=(0, ENDLESS), relative=True, slots=_LEAST_SLOTS)
        system.memory.system["level"] = self.level
        return system

    # ---- the runs ------------------------------------------------------------------------------------

    def _pools(self, rng: np.random.Generator, tasks: NDArray[np.void]) -> Pools:
        """Return the random numbers of the tasks; each goes on with those that the one before has left."""
        return Pools(self.scenario, rng)

    def _tasks(self, sizes: FloatArray) -> NDArray[np.void]:
        tasks = np.zeros(len(sizes), TASK)
        tasks["size"], tasks["place"] = sizes, GO_ON
        tasks["first_cut"] = self._cut
        tasks["lasts"] = foreseen_time(self.scenario, sizes)
        tasks["most"] = np.minimum(_GENEROUS * self.scenario.arrival_rate * tasks["lasts"] + _SLACK, 2.0**62)
        return tasks

    def _run(self, memory: Memory, tasks: NDArray[np.void], pools: Pools) -> tuple[NDArray[np.void], FloatArray]:
        """Run the tasks of a snapshot; returns them with their results, and what they have found."""
        user = self.setting.policy.user
        drive = drive_point(self.setting.kernel["family"], None if user is None else user.function)
        work = pools.give(allocate_work(tasks, len(self.times), 0, _CHUNK, pack(memory)))
        own = work.buffer
        like = memory._replace(marks=self.times.copy(), above=np.zeros(len(self.times) + 1))
        base = memory = unpack(own, like)
        status = drive(memory, work)
        while status != FINISHED:
            if status == GROW:
                memory, buffer = _grown(memory, work.buffer)
                work = work._replace(buffer=buffer)
            elif status == SHRINK:
                memory, work = base, work._replace(buffer=own)
            elif status == NEED_NUMBERS:
                pools.more()
                work = pools.give(work)
            else:
                self._refuse(status, work)
            if len(memory.jobs) > _MOST_PRESENT:
                self._refuse(TOO_LONG, work)
            status = drive(memory, work)
        pools.take_back(work)
        return work.tasks, work.found

    def _refuse(self, status: int, work: Work) -> None:
        label, task = self.setting.policy.label, work.tasks[work.drive["task"][0]]
        if status == TOO_LONG:
            raise ValueError(
                f"policy {label}: a block that holds a job of size {task['size']:.4g} has not ended within "
                f"{int(task['most'])} jobs, or with {_MOST_PRESENT} present; allowed: a policy under which it does"
            )
        raise ValueError(f"policy {label}: its rates or indices are NaN or not allowed")


def _grown(memory: Memory, buffer: FloatArray) -> tuple[Memory, FloatArray]:
    """Return both with twice the slots."""
    larger = enlarged(buffer, memory)
    like = allocate(2 * len(memory.jobs), parameters=memory.parameters, marks=memory.marks)
    return unpack(larger, like._replace(above=memory.above, periods=memory.periods)), larger


class Pools:
    """Random numbers for the runs, used up in turn.

    Args:
        model: the scenario.
        rng: source of randomness.
        length: numbers of a kind that are drawn at once.
    """

    def __init__(self, model: Scenario, rng: np.random.Generator, length: int = _POOL) -> None:
        self._arrivals, self._law = arrival_process(model.arrivals, model.arrival_rate), model.sizes
        self._rng, self._length = rng, length
        self._draw()

    def more(self) -> None:
        """Draw new numbers, for those that there are have been used up."""
        self._draw()

    def _draw(self) -> None:
        self.gaps = self._arrivals.gaps(self._rng, self._length)
        self.sizes = self._law.sample(self._rng, self._length)
        self.coins = self._rng.random(self._length)
        self.places = {"gap_at": 0, "size_at": 0, "coin_at": 0}

    def give(self, work: Work) -> Work:
        """Return the work with the numbers."""
        for name, place in self.places.items():
            work.drive[name] = place
        return work._replace(gap_pool=self.gaps, size_pool=self.sizes, coin_pool=self.coins)

    def take_back(self, work: Work) -> None:
        """Note how many have been used up."""
        self.places = {name: int(work.drive[name][0]) for name in self.places}
