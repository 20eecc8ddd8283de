"""Runs of blocks on given jobs: each counts exactly the jobs that are charged to the one it injects.

Only the cuts draw random numbers. Their check is by 99.9 % intervals (Student's, over independent coins), 11 in all: a
correct kernel would fail for a fraction of at most 0.011 of the choices of seeds.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from queue_env import allocation_policy, anchor_policy, index_policy, law, scenario
from queue_env.kernel.blocks import ENDLESS, FINISHED, TASK
from queue_env.kernel.entry_points import drive_point
from queue_env.kernel.layout import Memory
from queue_env.kernel.packing import allocate_work, pack, unpack
from queue_env.plan import make_plan
from queue_env.rules import parse_policy
from queue_env.scoring import blocks as blocks_module
from queue_env.scoring.blocks import Blocks
from queue_env.scoring.strata import make_strata
from queue_env.settings import Setting, set_up
from queue_env.system import System
from queue_env.workload import Chunk
from tests import reference
from tests.scoring.rules import fair_shares, log_rate, original_size
from tests.scoring.slow_blocks import charges, cut_into_blocks

Floats = NDArray[np.float64]
Jobs = tuple[list[float], list[float]]  # arrival times and sizes

NEVER = np.inf
SPARE = 0.5
POLICIES = ("srpt", "psjf", "fcfs", "lcfs", "plcfs", "ps", "las", "split", "dynasplit", "super-server")
OWN: dict[str, tuple[Any, str]] = {  # by the built-in policy that each is
    "index": (index_policy(original_size, dynamic=False), "psjf"),
    "anchor": (anchor_policy(log_rate), "dynasplit"),
    "allocation": (allocation_policy(fair_shares), "ps"),
}
CASES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    **{name: (name, name, {}) for name in POLICIES},
    "backlog-split": ("backlog-split:b=1,kappa=0.3", "backlog-split", {"b": 1.0, "kappa": 0.3}),
    "thresh-split": ("thresh-split:d=1.5", "thresh-split", {"d": 1.5}),
    **{name: (*own, {}) for name, own in OWN.items()},
}


def given_jobs(seed: int, count: int, servers: int) -> Jobs:
    """Arrival times and sizes, heavy-tailed; at the end the largest of all, long after all others have left."""
    rng = np.random.default_rng(seed)
    sizes = 0.4 * rng.random(count) ** (-1 / 1.5)
    arrivals = np.cumsum(rng.exponential(1 / (servers - SPARE), count))
    end = arrivals[-1] + 3 * sizes.sum()
    return [*arrivals.tolist(), float(end)], [*sizes.tolist(), float(sizes.sum())]


def just_before(system: System, gap: float) -> Memory:
    twin = copy.copy(system)
    twin.memory = Memory(**system.state())
    state = twin.memory.system
    state["horizon"] = twin.now + gap
    twin.drain()
    state["horizon"], state["draining"] = np.inf, 0
    return twin.memory


def counted(
    setting: Setting,
    memory: Memory,
    size: float,
    later: tuple[Floats, Floats],
    marks: Floats,
    cut: float,
    coins: Floats,
    lasts: float,
) -> tuple[Floats, float]:
    """The jobs that a run counts, by how many marks they are above, shape (marks + 1,), and the time lost by cuts."""
    tasks = np.zeros(1, TASK)
    tasks["size"], tasks["first_cut"], tasks["lasts"], tasks["most"] = size, cut, lasts, 1e9
    work = allocate_work(tasks, len(marks), 0, 64, pack(memory))
    work = work._replace(gap_pool=later[0], size_pool=later[1], coin_pool=coins)
    like = memory._replace(marks=marks.copy(), above=np.zeros(len(marks) + 1))
    user = setting.policy.user
    drive = drive_point(setting.kernel["family"], None if user is None else user.function)
    assert drive(unpack(work.buffer, like), work) == FINISHED
    return np.asarray(work.found[0]), float(work.tasks["lost"][0])


@dataclass(frozen=True)
class Given:
    """A policy on given jobs: the state just before each of them but the last, shape (jobs - 1,)."""

    setting: Setting
    gaps: Floats
    sizes: Floats
    states: list[Memory]

    def counted(self, marks: Floats) -> Floats:
        """What the runs count that inject each job at its place, shape (jobs - 1, marks + 1)."""
        return self.cut(marks, NEVER, np.ones((len(self.states), 100)), np.zeros(len(self.states)))[0]

    def cut(self, marks: Floats, cut: float, coins: Floats, lasts: Floats) -> tuple[Floats, Floats]:
        """The same, and the time lost, of runs that may be cut and are foreseen to last, shape (jobs - 1,)."""
        found, lost = np.zeros((len(self.states), len(marks) + 1)), np.zeros(len(self.states))
        for k, memory in enumerate(self.states):
            if self.sizes[k] > memory.system["block_largest"][0]:
                later = self.gaps[k + 1 :].copy(), self.sizes[k + 1 :].copy()
                size, numbers = float(self.sizes[k]), coins[k].copy()
                found[k], lost[k] = counted(self.setting, memory, size, later, marks, cut, numbers, float(lasts[k]))
        return found, lost


def on_given_jobs(policy: Any, servers: int, jobs: Jobs, level: int) -> Given:
    setting = set_up(parse_policy(policy), servers, SPARE, law({"law": "pareto", "alpha": 1.5, "mean": 1.0}))
    arrivals, sizes = map(np.array, jobs)
    gaps = np.diff(arrivals, prepend=0.0)
    system = System(setting, counted=(0, ENDLESS), relative=True)
    system.memory.system["level"] = level
    states = []
    for k in range(len(sizes) - 1):
        states.append(just_before(system, float(gaps[k])))
        system.feed(Chunk(gaps[k : k + 1].copy(), sizes[k : k + 1].copy(), None))
    return Given(setting, gaps, sizes, states)


def departures_of(case: str, jobs: Jobs, servers: int) -> list[float]:
    _, name, parameters = CASES[case]
    run = reference.simulate(*jobs, name, servers, delta=SPARE, parameters=parameters)
    return [float(time) for time in run.departure_times if time is not None]


def expected(jobs: Jobs, departures: list[float], level: int, marks: Floats) -> Floats:
    """What the runs have to count, shape (jobs - 1, marks + 1)."""
    arrivals, sizes = jobs
    found = np.zeros((len(sizes), len(marks) + 1))
    for job, owner in enumerate(charges(arrivals, sizes, departures, level, float(marks[-1]))):
        found[owner, np.searchsorted(marks, departures[job] - arrivals[job])] += 1
    return found[:-1]


@pytest.mark.parametrize("last", [1e6, 8.0, 1.0])
@pytest.mark.parametrize("case", CASES)
def test_runs_count_the_jobs_charged_to_the_injected_one(case: str, last: float) -> None:
    servers = 2
    jobs = given_jobs(7, 80, servers)
    departures = departures_of(case, jobs, servers)
    marks = np.array([0.0, last / 4, last])
    for level in (0, 1, 3):
        found = on_given_jobs(CASES[case][0], servers, jobs, level).counted(marks)
        np.testing.assert_array_equal(found, expected(jobs, departures, level, marks), err_msg=f"level {level}")


@pytest.mark.parametrize("last", [1e6, 8.0, 1.0])
@pytest.mark.parametrize("servers", [1, 3])
def test_every_job_is_counted_once(servers: int, last: float) -> None:
    """By one run and no other; and as above as many marks as it is."""
    jobs = given_jobs(11, 200, servers)
    marks = np.array([0.0, last])
    for level in (0, 2, 6):
        found = on_given_jobs("srpt", servers, jobs, level).counted(marks)
        assert found.sum() == len(found)


def test_a_block_ends_at_the_level_when_its_largest_job_has_left() -> None:
    # Job 1 is the largest. The number present falls from 2 to 1 at 2.5 and at 4, when job 1 has left.
    arrivals, sizes, departures = [0.0, 1.0, 2.0, 3.0, 5.0, 6.0], [3.0, 9.0, 1.0, 1.0, 1.0, 2.0], [2.25, 3.5, 2.5, 4.0]
    departures += [5.5, 7.0]
    blocks = cut_into_blocks(arrivals, sizes, departures, 1)
    assert [(block.jobs, block.end) for block in blocks] == [([0, 1, 2, 3], 3.5), ([4, 5], np.inf)]
    # Job 0 is there when job 1 arrives; with a last time of 0.5 that is too late.
    assert charges(arrivals, sizes, departures, 1, 1e9) == [1, 1, 1, 1, 4, 5]
    assert charges(arrivals, sizes, departures, 1, 0.5) == [0, 1, 1, 1, 4, 5]


def test_every_block_has_one_job_at_least_and_every_job_one_block() -> None:
    jobs = given_jobs(13, 200, 2)
    departures = departures_of("fcfs", jobs, 2)
    for level in (0, 1, 4):
        blocks = cut_into_blocks(*jobs, departures, level)
        assert Counter(job for block in blocks for job in block.jobs) == Counter(range(len(jobs[0])))
        assert len(blocks) > 2


@pytest.mark.parametrize("policy", ["srpt", "ps"])
def test_cut_runs_count_as_much_on_average(policy: str) -> None:
    servers, times = 2, 2000
    jobs = given_jobs(17, 100, servers)
    run = on_given_jobs(policy, servers, jobs, 1)
    marks = np.array([0.0, 0.5, 2.0, 5.0, 1e6])
    whole = run.counted(marks).sum(axis=0)
    rng = np.random.default_rng(5)
    coins = rng.random((times, len(run.states), 100))
    never = np.zeros(len(run.states))
    cut = np.array([run.cut(marks, 5.0, numbers, never)[0].sum(axis=0) for numbers in coins])
    above, exact = (part[..., ::-1].cumsum(axis=-1)[..., ::-1][..., 1:5] for part in (cut, whole))
    half = special.stdtrit(times - 1, 0.9995) * above.std(axis=0, ddof=1) / np.sqrt(times)
    assert np.all(half > 0)
    assert np.all(half < 0.2 * exact)
    assert np.all(abs(above.mean(axis=0) - exact) <= half), (above.mean(axis=0), exact, half)


def test_the_time_that_cuts_take_off_is_won_as_often() -> None:
    """Its mean is zero; and with what it would have added at a steady pace, runs differ much less."""
    servers, times, size = 2, 2000, 400.0
    gaps, sizes = np.full(1000, 0.5), np.full(1000, 0.45)  # a server is left for the large job, which lasts 400
    arrivals = np.cumsum(gaps)
    sizes[0] = size
    run = on_given_jobs("srpt", servers, (arrivals.tolist(), sizes.tolist()), 0)
    run = Given(run.setting, run.gaps, run.sizes, run.states[:1])
    marks, rng = np.array([0.0, 0.2]), np.random.default_rng(6)
    found, lost = (
        np.array(part).reshape(times, -1)
        for part in zip(
            *(run.cut(marks, 50.0, rng.random((1, 100)), np.array([size])) for _ in range(times)), strict=True
        )
    )
    whole, above = run.counted(marks)[0, 2], found[:, 2]
    error = special.stdtrit(times - 1, 0.9995) / np.sqrt(times)
    assert set(np.round(lost[:, 0], 9)) == {350.0, -350 + 2 * 300, -350 - 600 + 4 * 200, -350 - 600 - 800}
    assert abs(lost.mean()) <= error * lost.std(ddof=1)
    assert abs(above.mean() - whole) <= error * above.std(ddof=1)
    mended = above + whole / size * lost[:, 0]
    assert abs(mended.mean() - whole) <= error * mended.std(ddof=1)
    assert mended.std() < 0.2 * above.std()


@pytest.mark.parametrize("policy", ["srpt", "ps", "las", "dynasplit", "backlog-split", OWN["allocation"][0]])
def test_room_for_jobs_does_not_matter(policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that grows within runs, and shrinks after them, changes nothing."""
    model = scenario("high-load-2")
    times = np.array([0.0, 10.0, 1000.0])
    made = Blocks(
        model,
        make_plan(model, [policy]).settings[0],
        make_strata(model.sizes, 100.0),
        times,
        level=2,
        warmup=1000,
        segment=1000,
        snapshots=20,
        columns=np.eye(len(times)),
    )
    counts = np.minimum(4.0, 2000 / made.expected_jobs())
    wide = made.replicate(np.random.SeedSequence(1), counts)
    monkeypatch.setattr(blocks_module, "_LEAST_SLOTS", 1)
    monkeypatch.setattr(blocks_module, "_SPARE_SLOTS", 1.0)
    monkeypatch.setattr(blocks_module, "_TOO_MANY_SLOTS", 1)
    for found, wanted in zip(made.replicate(np.random.SeedSequence(1), counts), wide, strict=True):
        np.testing.assert_array_equal(found, wanted)
