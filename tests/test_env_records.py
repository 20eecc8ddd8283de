"""The records an environment keeps of its jobs: of those present, and across snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import queue_env

RULE: dict[str, Any] = {"action": "rule", "rules": ["srpt"], "jobs": 10_000}


def play(env: queue_env.QueueEnv, steps: int) -> None:
    for _ in range(steps):
        env.step(0)


def assert_equal(records: np.ndarray[Any, Any], others: np.ndarray[Any, Any]) -> None:
    assert records.dtype.names is not None
    for name in records.dtype.names:
        np.testing.assert_array_equal(records[name], others[name])


def test_jobs_in_service_have_a_start_and_waiting_ones_have_none() -> None:
    env = queue_env.QueueEnv(overrides={"servers": 1, "load": 0.5}, records=True, **RULE)
    workload = queue_env.Workload(arrival_times=np.array([1.0, 2.0, 3.0]), sizes=np.array([1.5, 9.0, 9.5]))
    env.reset(options={"workload": workload})
    play(env, 3)  # the arrivals at 2 and 3, the departure at 2.5
    records = env.records()
    np.testing.assert_array_equal(records["start_time"], [1.0, 2.5, np.nan])
    np.testing.assert_array_equal(records["departure_time"], [2.5, np.nan, np.nan])
    assert records["outcome"].tolist() == [0, 2, 2]


def test_a_snapshot_takes_the_records_along() -> None:
    env = queue_env.QueueEnv(records=True, **RULE)
    env.reset(seed=3)
    play(env, 500)
    other = queue_env.QueueEnv(records=True, **RULE)
    other.reset(seed=4)
    other.reset(options={"snapshot": env.snapshot()})
    assert_equal(other.records(), env.records())
    play(env, 100)
    play(other, 100)
    assert_equal(other.records(), env.records())


def test_without_records_in_the_snapshot_only_the_jobs_present_are_known() -> None:
    silent, full = (queue_env.QueueEnv(records=kept, **RULE) for kept in (False, True))
    for env in (silent, full):
        env.reset(seed=3)
        play(env, 500)
    other = queue_env.QueueEnv(records=True, **RULE)
    other.reset(seed=4)
    play(other, 900)
    other.reset(options={"snapshot": silent.snapshot()})
    known, records = full.records(), other.records()
    here = known["outcome"] == 2
    assert here.any()
    assert not here.all()
    np.testing.assert_array_equal(records["outcome"], np.where(here, 2, -1))
    for name in ("arrival_time", "size", "start_time"):
        np.testing.assert_array_equal(records[name][here], known[name][here])
        assert np.isnan(records[name][~here]).all()


@pytest.mark.parametrize("reward", ["exceed(1e9)", "tail"])
def test_a_step_that_costs_nothing_is_worth_zero_without_a_sign(reward: str) -> None:
    env = queue_env.QueueEnv(reward=reward, **RULE)
    env.reset(seed=0)
    rewards = [env.step(0)[1] for _ in range(20)]
    assert any(value == 0.0 for value in rewards)
    assert not any(np.signbit(value) for value in rewards if value == 0.0)
