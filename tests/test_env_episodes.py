"""What carries over from one episode to the next, and events that fall together or lie far out in time."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

import queue_env
from queue_env.kernel.env_layout import FAR

LEVEL = 0.999  # a test below fails by chance once in a thousand seeds
MODEL: dict[str, Any] = {
    "scenario": {"servers": 1, "load": 0.7, "sizes": {"law": "exponential", "mean": 1.0}},
    "action": "rule",
    "rules": ["fcfs"],
}


def half_width(values: Any) -> float:
    factor = float(stats.norm.ppf((1 + LEVEL) / 2))
    return factor * float(np.std(values, ddof=1)) / len(values) ** 0.5


def test_later_episodes_begin_with_a_fresh_gap() -> None:
    envs = queue_env.QueueVectorEnv(200, episode="horizon", horizon=20.0, reward="mean", records=True, **MODEL)
    envs.reset(seed=1)
    first: list[float] = []
    while len(first) < 4000:
        _, _, _, truncated, _ = envs.step(np.zeros(200, np.int64))
        for b in np.flatnonzero(truncated):
            first.append(float(envs.records(int(b))["arrival_time"][0]) if len(envs.records(int(b))) else 20.0)
    # Within the horizon: P[none in 20] = 1e-6.
    assert abs(np.mean(first) - 1 / 0.7) < half_width(first)


def test_later_big_job_episodes_cost_what_first_ones_do() -> None:
    count = 300
    envs = queue_env.QueueVectorEnv(
        count, episode="big-job", big_sizes=(0.5, 15.0), reward="exceed(3)", **MODEL, autoreset_mode="SameStep"
    )
    envs.reset(seed=2)
    episode, total = np.zeros(count, np.int64), np.zeros(count)
    costs: dict[bool, list[float]] = {True: [], False: []}
    while len(costs[False]) < 4000 or episode.min() == 0:
        _, rewards, terminated, _, _ = envs.step(np.zeros(count, np.int64))
        total -= rewards
        for b in np.flatnonzero(terminated):
            costs[bool(episode[b] == 0)].append(float(total[b]))
        episode += terminated
        total[terminated] = 0.0
    for seed in range(10, 20):  # more first episodes
        envs.reset(seed=1000 * seed)
        over, total = np.zeros(count, np.bool_), np.zeros(count)
        while not over.all():
            _, rewards, terminated, _, _ = envs.step(np.zeros(count, np.int64))
            total -= np.where(over, 0.0, rewards)
            over |= terminated
        costs[True] += total.tolist()
    first, later = costs[True], costs[False]
    assert abs(np.mean(first) - np.mean(later)) < np.hypot(half_width(first), half_width(later))


@pytest.mark.parametrize("rule", ["las", "backlog-split:b=1,kappa=1"])
def test_a_change_of_rates_is_met_where_the_clock_is_set_back(rule: str) -> None:
    servers = 1 if rule == "las" else 2
    arrivals = [0.0, FAR - 1, FAR + 1, FAR + 1.5, FAR + 40]
    workload = queue_env.Workload(arrivals, [1.0, 4.0, 4.0, 0.75, 1.0])
    departures_are_compiled(rule, servers, workload)


@pytest.mark.parametrize(
    ("rule", "arrivals", "sizes"),
    [
        ("backlog-split:b=1,kappa=1", [0.5, 1.0, 1.0, 1.5, 1.5], [1.5, 0.5, 0.5, 0.5, 0.5]),
        ("backlog-split:b=2,kappa=1", [0.0, 0.5, 1.0, 2.0, 2.0], [2.5, 2.0, 1.5, 2.0, 1.0]),
    ],
)
def test_jobs_that_complete_together_all_leave(rule: str, arrivals: list[float], sizes: list[float]) -> None:
    departures_are_compiled(rule, 2, queue_env.Workload(arrivals, sizes))


def departures_are_compiled(rule: str, servers: int, workload: queue_env.Workload) -> None:
    model = {"servers": servers, "load": 0.75, "sizes": {"law": "exponential", "mean": 1.0}}
    env = queue_env.QueueEnv(model, action="rule", rules=[rule], records=True, reward="mean")
    env.reset(seed=0, options={"workload": workload})
    over = False
    while not over:
        *_, terminated, truncated, _ = env.step(0)
        over = terminated or truncated
    compiled = queue_env.simulate(workload, rule, servers=servers, records=True).records
    assert compiled is not None
    np.testing.assert_allclose(env.records()["departure_time"], compiled["departure_time"], rtol=0, atol=1e-9)


def test_a_job_with_nothing_left_leaves_though_its_rate_is_taken_away() -> None:
    env = queue_env.QueueEnv(action="allocation", work_conserving=False, reward="mean", records=True)
    env.reset(seed=0, options={"workload": queue_env.Workload([0.0, 0.0], [2.0, 2.0])})
    width = env.action_space.shape[0]
    env.step(np.ones(width))  # the second arrives
    env.step(np.ones(width))  # both complete at 2, one of them leaves
    env.step(np.zeros(width))
    np.testing.assert_array_equal(env.records()["departure_time"], [2.0, 2.0])


def test_first_sizes_that_hardly_any_job_is_below_are_refused() -> None:
    model = {"servers": 1, "load": 0.5, "sizes": {"law": "lognormal", "sigma": 1.0, "mean": 1.0}}
    with pytest.raises(ValueError, match="big_sizes"):
        queue_env.QueueEnv(model, episode="big-job", big_sizes=(1e-3, 10.0))


def test_a_pickled_environment_need_not_be_compiled_again() -> None:
    env = queue_env.QueueEnv(action="anchor")
    env.reset(seed=0)
    again = pickle.loads(pickle.dumps(env))
    for name, array in env.batch.memory._asdict().items():
        flags = getattr(again.batch.memory, name).flags
        assert (flags.c_contiguous, flags.f_contiguous) == (array.flags.c_contiguous, array.flags.f_contiguous)
