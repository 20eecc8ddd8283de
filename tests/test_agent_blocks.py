"""Blocks of an agent through the environment: beside those of the compiled policy, and beside plain runs.

Of the estimates, 19 are checked by 99.9 % intervals (Student's, over independent replications) for differences: a
correct estimator would fail one of them for a fraction of at most 0.019 of the choices of seeds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from baselines import make_agent
from queue_env import QueueVectorEnv, Scenario, scenario, simulate
from queue_env.batch import BatchOfSystems
from queue_env.kernel.env_layout import DISABLED
from queue_env.plan import make_plan
from queue_env.scoring.agent_blocks import _IN_BLOCK, _INJECTED, AgentBlocks, _Runs, agent_policy
from queue_env.scoring.agent_runs import run_agent
from queue_env.scoring.blocks import Blocks, Replication
from queue_env.scoring.lanes import first_states
from queue_env.scoring.pilot import Replicator
from queue_env.scoring.strata import make_strata
from queue_env.tail import jackknife, quotient

Floats = NDArray[np.float64]

LEVEL = 0.999
TIMES = np.array([0.0, 1.0, 3.0, 10.0, 30.0])
REPLICATIONS = 8
LIGHT = scenario({"servers": 2, "load": 0.8, "sizes": {"law": "exponential", "mean": 1.0}})
HEAVY = scenario("high-load-2")
CASES: dict[str, tuple[Scenario, str, dict[str, Any]]] = {
    "M/M/2": (LIGHT, "srpt", {"action": "rule", "rules": ["fcfs", "srpt"]}),
    "high-load-2": (HEAVY, "srpt", {"action": "anchor", "observation": "dict", "symmetric_actions": True}),
}


def blocks_of_agent(model: Scenario, policy: str, arguments: dict[str, Any], **changes: Any) -> AgentBlocks:
    agent = make_agent(policy, QueueVectorEnv(1, scenario=model, **arguments))
    made = AgentBlocks(
        model,
        agent_policy(agent, label=policy, **arguments),
        make_strata(model.sizes, model.c * TIMES[-1] / 10),
        TIMES,
        level=2,
        warmup=300,
        segment=128 * 200,
        snapshots=256,
        columns=np.eye(len(TIMES)),
    )
    return replace(made, **changes)


def runs_of_classes(replicator: Replicator, most: int) -> Floats:
    """Many of the classes where the runs are short and that matter; with a probability of 0.2 one of the others."""
    wish = np.where(replicator.probabilities > 1e-7, np.clip(5000 / replicator.expected_jobs(), 0.2, most), 0.2)
    return np.asarray(np.where(wish < 1, wish, np.floor(wish)))


def sums(replicator: Replicator, most: int, replications: int) -> Floats:
    """Estimates of the tail, shape (replications, times)."""
    counts = runs_of_classes(replicator, most)
    made = [replicator.replicate(np.random.SeedSequence([3, i]), counts) for i in range(replications)]
    return np.array([replicator.probabilities @ (r.totals / r.counts[:, None]) for r in made])


@cache
def sums_of_agent(case: str) -> Floats:
    return sums(blocks_of_agent(*CASES[case]), 128, REPLICATIONS)


def tail_of(sums: Floats) -> tuple[Floats, Floats]:
    """The tail at the times after 0 and its standard error."""
    found = jackknife(sums, lambda part: quotient(part[..., 1:], part[..., :1]))
    return found.value, found.half_width() / special.stdtrit(len(sums) - 1, 0.975)


def check(value: Floats, error: Floats, other: Floats, other_error: Floats) -> None:
    factor = special.stdtrit(REPLICATIONS - 1, (1 + LEVEL) / 2)
    both = np.hypot(error, other_error)
    assert np.all(both[:3] < 0.2 * other[:3])
    assert np.all(abs(value - other) <= factor * both), (value, other, both)


@pytest.mark.parametrize("case", CASES)
def test_the_tail_is_that_of_the_compiled_policy(case: str) -> None:
    model, policy, arguments = CASES[case]
    agent = blocks_of_agent(model, policy, arguments)
    setting = make_plan(model, [policy]).settings[0]
    compiled = Blocks(
        model,
        setting,
        agent.strata,
        TIMES,
        level=4,
        warmup=100_000,
        segment=500_000,
        snapshots=256,
        columns=np.eye(len(TIMES)),
    )
    check(*tail_of(sums_of_agent(case)), *tail_of(sums(compiled, 128, 2 * REPLICATIONS)))


@pytest.mark.parametrize("case", CASES)
def test_the_tail_is_that_of_a_plain_run(case: str) -> None:
    model, policy, _ = CASES[case]
    plain = simulate(model, [policy], jobs=4_000_000, seed=1)[policy]
    low, high = plain.tail_interval(TIMES[1:])
    error = (high - low) / 2 / special.stdtrit(19, 0.975)
    check(*tail_of(sums_of_agent(case)), plain.tail(TIMES[1:]), error)


@pytest.mark.parametrize("case", CASES)
def test_all_jobs_are_counted_once(case: str) -> None:
    """At t = 0 the tail is one."""
    total = sums_of_agent(case)[:, 0]
    half = special.stdtrit(len(total) - 1, (1 + LEVEL) / 2) * total.std(ddof=1) / np.sqrt(len(total))
    assert half < 0.5
    assert abs(total.mean() - 1) <= half


def test_cut_blocks_count_as_much() -> None:
    """With a last time of 0.5, nearly all blocks are cut; the tail at 0.5 must be that of a plain run."""
    times = np.array([0.0, 0.5])
    arguments = {"action": "allocation", "rules": None}
    made = blocks_of_agent(LIGHT, "fcfs", arguments, times=times, columns=np.eye(2), snapshots=64)
    tail, error = tail_of(sums(made, 300, REPLICATIONS))
    plain = simulate(LIGHT, ["fcfs"], jobs=1_000_000, seed=2)["fcfs"]
    check(tail, error, plain.tail(times[1:]), np.zeros(1))


@pytest.mark.parametrize("model", [LIGHT, HEAVY, scenario("high-load-10")])
def test_the_first_states_are_those_of_a_system(model: Scenario) -> None:
    for jobs, began, largest, which in first_states(model, 2, np.random.SeedSequence(8), 20):
        ages, sizes = np.array([job.age for job in jobs]), np.array([job.size for job in jobs])
        assert ages[-1] == 0
        assert np.all(np.diff(ages) < 0)
        assert all(0 <= job.remaining <= job.size for job in jobs)
        assert jobs[-1].remaining == pytest.approx(jobs[-1].size, rel=1e-9)
        assert sum(job.remaining < job.size for job in jobs) >= min(len(jobs), model.servers) - 1
        mine = -ages > began
        assert len(jobs) - mine.sum() <= 2
        assert mine[-1]
        if which >= 0:
            assert mine[which]
            assert sizes[which] == largest == sizes[mine].max()
        else:
            assert largest > sizes[mine].max()


SMALL: dict[str, Any] = {"warmup": 20, "segment": 320, "snapshots": 16}


@pytest.mark.parametrize("arguments", [{"action": "anchor"}, {"observation": "dict"}, {"action": "priority"}])
def test_a_replication_is_a_function_of_seed_and_counts(arguments: dict[str, Any]) -> None:
    made = blocks_of_agent(LIGHT, "srpt", {**arguments, "reward": "tail", "episode": "big-job"}, **SMALL)
    counts = runs_of_classes(made, 3)
    seed = np.random.SeedSequence(4)
    first, again = made.replicate(seed, counts), made.replicate(seed, counts)
    assert isinstance(first, Replication)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert first.totals.shape == first.squares.shape == (len(counts), len(TIMES))
    assert np.all(np.diff(first.totals, axis=1) <= 0)
    np.testing.assert_array_equal(first.runs[counts >= 1], counts[counts >= 1])
    assert np.all(first.jobs >= first.runs)
    assert first.plain > 16 * 20
    other_seed = made.replicate(np.random.SeedSequence(5), counts)
    assert not np.array_equal(first.totals, other_seed.totals)


def test_what_cuts_take_off_and_give_is_found_less_and_more() -> None:
    """Runs that have lost time have found fewer jobs, and at the pace of all that makes up for it, but for noise."""
    times = np.array([0.0, 20.0])  # the second is when the first cut may come
    strata = make_strata(HEAVY.sizes, 200.0)
    made = blocks_of_agent(HEAVY, "srpt", {"action": "anchor"}, **SMALL, times=times, columns=np.eye(2), strata=strata)
    lasts = strata.medians / min(HEAVY.spare, 1.0)
    counts = np.where((lasts > 80.0) & (lasts < 320.0), 20.0, 0.01)
    found = made.replicate(np.random.SeedSequence(8), counts)
    long = found.runs >= 20
    assert long.any()
    assert np.all(found.lost_squares[long] > 0)
    assert not found.lost[lasts < 20.0].any()
    slopes = found.lost_totals[long, 0].sum() / found.lost_squares[long].sum()
    pace = found.paces[0] / found.paces[-2]
    assert found.paces[-1] >= found.runs[long].sum()
    assert -2 * pace < slopes < -pace / 2


def test_a_job_of_a_given_size_comes_a_whole_gap_later() -> None:
    """Whenever a system is left for a snapshot, what is left of its present gap must not be taken for a whole one."""
    config = blocks_of_agent(LIGHT, "fcfs", {"action": "rule", "rules": ["fcfs"]}).config
    batch = BatchOfSystems(config, 100, DISABLED)
    batch.reset(range(100), {b: np.random.SeedSequence([6, b]) for b in range(100)})
    snapshot = batch.snapshot(0)
    gaps = []
    for _ in range(30):
        batch.inject(dict.fromkeys(range(100), snapshot), {b: 50.0 + b for b in range(100)})
        before = batch.memory.systems["arrived"].copy()
        came = np.zeros(100, np.bool_)
        while not came.all():
            batch.step()
            now = ~came & (batch.memory.systems["arrived"] > before)
            for b in np.flatnonzero(now).tolist():
                assert batch.present(b)["size"][-1] == 50.0 + b
            gaps += (batch.memory.systems["now"][now] - snapshot.time).tolist()
            came |= now
        for _ in range(5):
            batch.step()
    unit = 1 / LIGHT.arrival_rate  # also the standard deviation of a gap
    assert len(gaps) == 3000
    assert abs(np.mean(gaps) - unit) < 3.29 * unit / np.sqrt(3000)


class Remembering:
    """An agent with a memory."""

    def predict(self, observation: Any, state: Any = None, *_: Any, deterministic: bool = True) -> tuple[Any, Any]:
        return np.zeros((len(observation), 1)), np.zeros(3)


def test_an_agent_with_a_memory_is_refused() -> None:
    made = blocks_of_agent(LIGHT, "srpt", {"action": "anchor"}, **SMALL)
    made = replace(made, policy=agent_policy(Remembering(), label="lstm", action="anchor"))
    with pytest.raises(ValueError, match="agent lstm: predict must be without a state"):
        made.replicate(np.random.SeedSequence(1), runs_of_classes(made, 1))


def test_too_many_jobs_are_refused() -> None:
    arguments = {"action": "rule", "rules": ["fcfs"], "capacity": 16}
    made = blocks_of_agent(LIGHT, "fcfs", arguments, **SMALL | {"warmup": 10_000})
    with pytest.raises(ValueError, match="agent fcfs: more jobs are present than its environment's capacity, 16"):
        made.replicate(np.random.SeedSequence(1), runs_of_classes(made, 1))


def test_a_level_that_is_never_reached_is_refused() -> None:
    made = blocks_of_agent(LIGHT, "srpt", {"action": "anchor"}, **SMALL, level=300)
    with pytest.raises(ValueError, match="has not once fallen from 301 to 300"):
        made.replicate(np.random.SeedSequence(1), runs_of_classes(made, 1))
    with pytest.raises(ValueError, match="agent srpt: the number present has not once fallen"):
        made.check()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decision_interval": 1.0}, "decision_interval must be None"),
        ({"scenario": "light-2"}, "scenario must be left out"),
        ({"overrides": {"load": 0.5}}, "overrides must be left out"),
        ({"slots": 1}, "slots must be"),
    ],
)
def test_what_no_environment_of_an_agent_has(arguments: dict[str, Any], message: str) -> None:
    policy = agent_policy(Remembering(), label="agent", **arguments)
    with pytest.raises(ValueError, match=message):
        policy.config(LIGHT)


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        agent_policy(Remembering(), label="agent", colour="red").config(LIGHT)


def test_an_agent_must_predict() -> None:
    with pytest.raises(ValueError, match="agent must be with a method predict"):
        agent_policy(object(), label="agent")  # type: ignore[arg-type]


def test_jobs_that_have_been_there_for_longer_than_the_last_time_count_for_an_earlier_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last, counted, left_out, watch = 0.5, list[float](), 0, _Runs._watch

    def noting(runs: _Runs) -> None:
        nonlocal left_out
        before = runs.stage.copy()
        watch(runs)
        for b in np.flatnonzero((before == _INJECTED) & (runs.stage == _IN_BLOCK)).tolist():
            counted.extend((runs.lanes.time[b] - runs._counted(b)).tolist())
            of_block = runs.lanes.arrivals(b) > runs.lanes.began[b]
            left_out += int(of_block.sum()) - len(runs._counted(b))

    monkeypatch.setattr(_Runs, "_watch", noting)
    changes = {"times": np.array([0.0, last]), "columns": np.eye(2), "snapshots": 128, "segment": 128 * 20}
    blocks = blocks_of_agent(LIGHT, "fcfs", {"action": "rule", "rules": ["fcfs"]}, **changes)
    blocks.replicate(np.random.SeedSequence(1), np.full(len(blocks.strata), 20.0))
    assert left_out > 0
    assert 0 < max(counted) < last


def test_an_agent_of_big_job_episodes_is_run_plainly() -> None:
    arguments: dict[str, Any] = {"action": "anchor", "episode": "big-job", "big_sizes": (10, 100), "reward": "tail"}
    agent = make_agent("srpt", QueueVectorEnv(1, scenario=HEAVY, **arguments))
    result = run_agent(HEAVY, agent_policy(agent, label="mine", **arguments), 4000, 0)
    assert result.policy == "mine"
    assert result.served + result.present == 4000
