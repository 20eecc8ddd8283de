"""What holds in every episode, whatever the arguments of the environment and whatever the actions are."""

from __future__ import annotations

import math
import pickle
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_env import QueueEnv
from queue_env.observation import Shown
from queue_env.snapshot import Snapshot
from tests.random_envs import RandomRun, random_runs

STEPS = 80
SERVED, ABANDONED, PRESENT = range(3)


def parts(observation: Any) -> list[np.ndarray[Any, Any]]:
    return list(observation.values()) if isinstance(observation, dict) else [observation]


def bits(value: Any) -> Any:
    """A value such that two are equal only if they are so to the bit, NaN and the signs of zeros included."""
    if isinstance(value, dict):
        return {key: bits(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [bits(part) for part in value]
    if isinstance(value, float | np.ndarray):
        return np.asarray(value).dtype.str, np.shape(value), np.asarray(value).tobytes()
    return value


def future(env: QueueEnv, actions: list[Any]) -> list[Any]:
    """All that an environment returns for some actions, those of the episodes that follow by themselves included."""
    seen = []
    for action in actions:
        returned = env.step(action)
        seen.append(bits(returned))
        if returned[2] or returned[3]:
            seen.append(bits(env.records()))
            seen.append(bits(env.reset()))
    return [*seen, bits(env.records())]


def check_observation(env: QueueEnv, observation: Any) -> None:
    assert env.observation_space.contains(observation)
    assert all(np.isfinite(part).all() for part in parts(observation))
    shown = env.layout.read(observation)
    present = len(env.snapshot().jobs)
    assert shown.number.item() == present
    # The compact view has the anchor's row apart, beside the rows in SRPT order.
    most = min(present, env.config.servers + 1) + (present > 0) if env.layout.kind == "compact" else present
    if env.layout.kind == "summary":
        check_summary(env, shown)
    assert shown.present.sum() == min(most, env.layout.rows)


def check_summary(env: QueueEnv, shown: Shown) -> None:
    """The summary is that of the jobs present; it keeps some six digits of what it compresses."""
    saved = env.snapshot()
    assert saved.classes is not None
    served, first, n = saved.jobs["rate"] > 0, saved.classes[1]["first"] == 1, env.config.servers
    assert shown.waiting.item() == (~served).sum()
    assert shown.priority_waiting.item() == (~served & first).sum()
    assert shown.busy.item() == pytest.approx(served.sum() / n, rel=1e-6)
    assert shown.priority_busy.item() == pytest.approx((served & first).sum() / n, rel=1e-6)
    ages = saved.ages[~served & (saved.remaining > 0)]  # who finishes at this instant waits for nothing
    assert shown.oldest.item() == pytest.approx(ages.max(initial=0.0), rel=1e-4, abs=1e-6 * env.config.unit)
    if shown.work is not None:
        assert shown.work.item() == pytest.approx(saved.remaining.sum(), rel=1e-4, abs=1e-6 * n * env.config.unit)


def check_counts(env: QueueEnv, completions: int, abandonments: int) -> None:
    """Everybody who has arrived has been served, or has lost patience, or is present."""
    outcomes, jobs = env.records()["outcome"], env.snapshot().jobs
    assert (outcomes == SERVED).sum() == completions
    assert (outcomes == ABANDONED).sum() == abandonments
    np.testing.assert_array_equal(np.flatnonzero(outcomes == PRESENT), jobs["number"])
    assert completions + abandonments + len(jobs) == len(outcomes)
    assert len(jobs) <= env.config.capacity


def check_end(env: QueueEnv, info: dict[str, Any], terminated: bool, completions: int, abandonments: int) -> None:
    """The episode ended for the reason that it gives."""
    config, kind = env.config, info["reason"].partition(":")[0]
    assert terminated == (kind == "empty")
    assert info["summary"]["served"] == completions
    assert info["summary"]["abandoned"] == abandonments
    if kind == "jobs":
        assert completions + abandonments == config.jobs
    elif kind == "horizon":
        assert info["time"] == pytest.approx(config.horizon * config.unit, rel=1e-12)
    elif kind == "capacity":
        assert len(env.snapshot().jobs) == config.capacity
    elif kind == "stalled":
        assert len(env.snapshot().jobs) > 0
    else:
        assert kind in ("empty", "workload")
        assert len(env.snapshot().jobs) == 0


@given(random_runs())
def test_observations_times_counts_and_rewards(made: RandomRun) -> None:
    env = made.env()
    observation, info = env.reset(seed=made.seed, options=made.options)
    check_observation(env, observation)
    began, elapsed, completions, abandonments = info["time"], [info["dt"]], 0, 0
    for action in islice(made.actions(env), STEPS):
        before = info["time"]
        observation, reward, terminated, truncated, info = env.step(action)
        check_observation(env, observation)
        assert math.isfinite(reward)
        assert reward <= 0
        assert all(math.isfinite(cost) and cost >= 0 for cost in info["cost"].values())
        assert info["time"] >= before
        assert info["dt"] >= 0
        elapsed.append(info["dt"])
        completions += info["completions"]
        abandonments += info["abandonments"]
        assert math.fsum(elapsed) == pytest.approx(info["time"] - began, rel=1e-12, abs=1e-12 * info["time"])
        check_counts(env, completions, abandonments)
        if "allocation" in info:
            rates = info["allocation"]
            assert ((rates >= 0) & (rates <= 1)).all()
            assert math.fsum(rates) <= env.config.servers + 1e-12
        if terminated or truncated:
            check_end(env, info, terminated, completions, abandonments)
            break
        assert "reason" not in info


def in_mid_episode(made: RandomRun, steps: int) -> tuple[QueueEnv, Any, list[Any]]:
    """An environment after some decisions, the episode not being over, what it shows, and the actions to come."""
    env = made.env()
    observation, _ = env.reset(seed=made.seed, options=made.options)
    actions = list(islice(made.actions(env), steps + STEPS))
    for action in actions[:steps]:
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            observation, _ = env.reset()
    return env, shown_but_for_elapsed(env, observation), actions[steps:]


def shown_but_for_elapsed(env: QueueEnv, observation: Any) -> Any:
    """What an observation shows of the state, without what has been since the last decision: a reset makes it zero."""
    since = ("elapsed", "arrivals", "completions", "abandonments")
    return bits({name: part for name, part in env.layout.read(observation)._asdict().items() if name not in since})


def put_back(place: QueueEnv, saved: Snapshot, seen: Any) -> None:
    """Put a snapshot back, after which all is as it was seen then."""
    observation, info = place.reset(options={"snapshot": saved})
    assert shown_but_for_elapsed(place, observation) == seen
    assert info["time"] == saved.time


@given(random_runs(), st.integers(0, 40))
def test_a_snapshot_has_the_same_future(made: RandomRun, steps: int) -> None:
    env, seen, actions = in_mid_episode(made, steps)
    saved = env.snapshot()
    expected = future(env, actions)
    put_back(env, saved, seen)
    assert future(env, actions) == expected


@pytest.mark.parametrize("used", [True, False])
@given(made=random_runs(), steps=st.integers(0, 40))
def test_a_snapshot_has_the_same_future_in_another_environment(used: bool, made: RandomRun, steps: int) -> None:
    env, seen, actions = in_mid_episode(made, steps)
    saved = pickle.loads(pickle.dumps(env.snapshot()))
    expected = future(env, actions)
    other = made.env()
    if used:
        other.reset(seed=made.seed + 1)
        other.step(actions[0])
    put_back(other, saved, seen)
    assert future(other, actions) == expected


@given(random_runs(), st.integers(0, 40))
def test_a_pickled_environment_has_the_same_future(made: RandomRun, steps: int) -> None:
    env, _, actions = in_mid_episode(made, steps)
    pickled = pickle.loads(pickle.dumps(env))
    assert future(pickled, actions) == future(env, actions)


# ---- snapshots at the edges ------------------------------------------------------------------------


def rewards(env: QueueEnv, steps: int) -> list[float]:
    return [float(env.step([0.5])[1]) for _ in range(steps)]


def test_a_snapshot_of_an_empty_system_is_put_back_empty() -> None:
    env = QueueEnv("light-2", action="anchor")
    env.reset(seed=0)
    while len(env.snapshot().jobs):
        env.step([0.5])
    saved = env.snapshot()
    observation, info = env.reset(options={"snapshot": saved})
    assert info["time"] == saved.time
    assert env.layout.read(observation).number.item() == 0


def test_a_snapshot_of_a_full_system_can_be_put_back() -> None:
    env = QueueEnv("light-2", action="anchor", slots=4, capacity=4)
    env.reset(seed=0, options={"jobs": [{"size": 50.0}] * 3, "job": {"size": 50.0}})
    saved = env.snapshot()
    assert len(saved.jobs) == env.config.capacity
    env.reset(options={"snapshot": saved})
    assert len(env.snapshot().jobs) == env.config.capacity


def test_an_environment_that_was_never_reset_goes_on_with_the_jobs_of_a_snapshot() -> None:
    env, fresh = (QueueEnv("light-2", action="anchor") for _ in range(2))
    env.reset(seed=0)
    rewards(env, 20)
    fresh.reset(options={"snapshot": env.snapshot()})
    assert rewards(fresh, 20) == rewards(env, 20)
