"""What the environments refuse, and what they say then; defaults that depend on other arguments."""

from __future__ import annotations

import copy
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from toy_envs import Toy

from queue_env import QueueEnv, QueueVectorEnv
from queue_env.checks import check_env

RULE: dict[str, Any] = {"action": "rule", "rules": ["srpt"]}
PATIENT: dict[str, Any] = {
    "scenario": {
        "servers": 1,
        "load": 0.8,
        "sizes": {"law": "exponential", "mean": 1.0},
        "patience": {"law": "exponential", "mean": 1.0},
    },
    "reward": "mean",
}


def terms(*arguments: Any, **others: Any) -> list[str]:
    return [term.name for term in QueueEnv(*arguments, **others).config.terms]


# ---- snapshots -------------------------------------------------------------------------------------------


def test_a_snapshot_of_an_episode_that_is_over_is_refused() -> None:
    env, envs = QueueEnv(jobs=1, **RULE), QueueVectorEnv(2, **RULE | {"jobs": 1})
    env.reset(seed=0)
    while not env.snapshot().over:
        env.step(0)
    saved = env.snapshot()
    for one in (env, envs):
        with pytest.raises(
            ValueError, match=r"options\['snapshot'\] must be of an episode that is not over, got Snapsh"
        ):
            one.reset(seed=1, options={"snapshot": saved})


def test_a_snapshot_is_shown_short() -> None:
    env = QueueEnv(**RULE)
    env.reset(seed=0)
    env.step(0)
    assert repr(env.snapshot()).startswith("Snapshot(high-load-2, time ")
    assert f"jobs present {len(env.snapshot().jobs)})" in repr(env.snapshot())


# ---- resets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", AutoresetMode)
def test_systems_that_were_never_reset_are_named(mode: AutoresetMode) -> None:
    envs = QueueVectorEnv(4, autoreset_mode=mode, **RULE)
    with pytest.raises(ValueError, match=r"step: systems that were never reset must be none, got \[0, 1, 2, 3\]"):
        envs.step(np.zeros(4, np.int64))
    envs.reset(seed=0, options={"reset_mask": np.array([False, True, False, True])})
    for one in (envs, copy.deepcopy(envs)):
        with pytest.raises(ValueError, match=r"never reset must be none, got \[0, 2\]"):
            one.step(np.zeros(4, np.int64))
    envs.reset(seed=7, options={"reset_mask": np.array([True, False, True, False])})
    envs.step(np.zeros(4, np.int64))


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_mask_is_obeyed_in_every_mode(mode: AutoresetMode) -> None:
    envs = QueueVectorEnv(2, autoreset_mode=mode, **RULE)
    envs.reset(seed=0)
    for _ in range(5):
        envs.step(np.zeros(2, np.int64))
    before = envs.snapshot(0).time
    envs.reset(options={"reset_mask": np.array([False, True])})
    assert envs.snapshot(0).time == before
    assert envs.step(np.zeros(2, np.int64))[4]["time"][1] < before


def test_masks_are_for_vector_environments() -> None:
    with pytest.raises(ValueError, match="options must be among workload, snapshot, jobs, job, got 'reset_mask'"):
        QueueEnv(**RULE).reset(options={"reset_mask": np.array([True])})
    with pytest.raises(ValueError, match="options must be a mapping, or None, got 5"):
        QueueVectorEnv(2).reset(options=5)  # type: ignore[arg-type]


def test_after_close_nothing_goes_on() -> None:
    env, envs = QueueEnv(**RULE), QueueVectorEnv(2, **RULE)
    actions: tuple[Any, Any] = (0, np.zeros(2, np.int64))
    for one, action in zip((env, envs), actions, strict=True):
        one.reset(seed=0)
        one.close()
        one.close()
        with pytest.raises(ValueError, match="step: environment must be open"):
            one.step(action)
        with pytest.raises(ValueError, match="reset: environment must be open"):
            one.reset(seed=0)


def test_what_needs_a_reset_says_so() -> None:
    env, envs = QueueEnv(records=True), QueueVectorEnv(3, records=True)
    for method in ("records", "snapshot"):
        with pytest.raises(ValueError, match=f"{method}: environment must be reset first"):
            getattr(env, method)()
        with pytest.raises(ValueError, match=f"{method}: environment 1 must be reset first"):
            getattr(envs, method)(1)
        for index in (5, 3, -1, 1.0, True, "1"):
            with pytest.raises(ValueError, match=f"{method}: index must be an integer from 0 to 2, got"):
                getattr(envs, method)(index)


# ---- options ---------------------------------------------------------------------------------------------


def test_defaults_of_jobs_that_are_there() -> None:
    env = QueueEnv(observation="dict")
    shown, _ = env.reset(seed=0, options={"jobs": [{"size": 50.0, "remaining": 20.0}, {"size": 60.0}]})
    assert shown["age"][:2].tolist() == [30.0, 0.0]
    assert shown["anchor"][:2].tolist() == [0.0, 1.0]
    env.reset(seed=0, options={"jobs": [{"size": 0.4, "remaining": 0.1, "age": 0.3}]})  # 0.4 - 0.1 is above 0.3


def test_response_times_include_the_age_and_costs_do_not() -> None:
    env = QueueEnv(reward="mean", overrides={"load": 0.01}, **RULE)
    env.reset(seed=0, options={"jobs": [{"size": 1.0, "age": 100.0}]})
    info = env.step(0)[4]
    assert info["response_time"] == pytest.approx(101.0)
    assert info["cost"]["mean"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"size": 5.0, "remaining": 1.0, "age": 3.0}, r"age of options\['jobs\[0\]'\] must be at least 4, the service"),
        ({"size": 1.0, "age": -1.0}, r"age of .* must be at least 0, got -1\.0"),
        ({"size": 1.0, "age": True}, "age of .* must be a finite number, got True"),
        ({"size": "2"}, "size of .* must be a finite number, got '2'"),
        ({"size": b"2"}, "size of .* must be a finite number, got b'2'"),
        ({"size": True}, "size of .* must be a finite number, got True"),
        ({"size": math.inf}, "size of .* must be a finite number, got inf"),
        ({"size": 0.0}, r"size of .* must be above 0, got 0\.0"),
        ({"size": 1.0, "remaining": "1"}, "remaining of .* must be a finite number, got '1'"),
        ({"size": 1.0, "remaining": 0.0}, r"remaining of .* must be above 0, at most the size 1, got 0\.0"),
        ({"size": 1.0, "anchor": 1}, "anchor of .* must be True or False, got 1"),
        ({"size": 1.0, "anchor": "no"}, "anchor of .* must be True or False, got 'no'"),
        ({"size": 1.0, "patience": -0.5}, r"patience of .* must be at least 0, got -0\.5"),
        ({"size": 1.0, "patience": "inf"}, "patience of .* must be a finite number, got 'inf'"),
        ({"size": 1.0, "patience": math.nan}, "patience of .* must be a finite number, got nan"),
    ],
)
def test_jobs_that_are_refused(job: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QueueEnv(**PATIENT).reset(options={"jobs": [job]})


def test_jobs_may_have_no_patience_left() -> None:
    env = QueueEnv(**PATIENT, **RULE)
    jobs = [{"size": 1.0}, {"size": 2.0, "patience": 0.0}, {"size": 3.0, "patience": math.inf}]
    env.reset(seed=0, options={"jobs": jobs})
    info = env.step(0)[4]
    assert (info["time"], info["abandonments"]) == (0.0, 1)


def test_a_first_size_that_cannot_occur_is_refused() -> None:
    env = QueueEnv(episode="big-job", big_sizes=(10, 100), action="anchor")
    for size in (0.1, 1e300):
        with pytest.raises(
            ValueError, match=r"size of options\['job'\] must be of positive density .* 0\.333333 to inf"
        ):
            env.reset(seed=0, options={"job": {"size": size}})
    law = env.config.scenario.sizes
    for size in (5.0, 50.0, 1e4):
        weight = env.reset(seed=0, options={"job": {"size": size}})[1]["weight"]
        assert weight == pytest.approx(float(law.pdf(size)) * size * math.log(10))


# ---- arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"jobs": 10**20}, "jobs must be an integer from 1 to 1000000000000000, got 100000000000000000000"),
        ({"jobs": 5.0}, r"jobs must be an integer from 1 to \d+, got 5\.0"),
        ({"slots": 10**9}, "slots must be an integer from 7 to 100000, got 1000000000"),
        ({"capacity": 10**9}, "capacity must be an integer from 16 to 1000000, got 1000000000"),
        ({"reward": "moment(1e9)"}, r"number in moment\(p\) must be at most 100, got 1000000000\.0"),
        ({"reward": {"mean": 1e200}}, r"weight of mean must be at most 1e\+100, got 1e\+200"),
        ({"reward_scale": 1e101}, r"reward_scale must be at most 1e\+100, got 1e\+101"),
        ({"reward_scale": math.inf}, "reward_scale must be a finite number > 0, got inf"),
        ({"tail_range": "12"}, "tail_range must be two numbers, 0 < low < high, got '12'"),
        ({"tail_range": b"12"}, "tail_range must be two numbers, 0 < low < high, got b'12'"),
        ({"tail_range": ("1", "2")}, r"tail_range\[0\] must be a finite number, got '1'"),
        ({"tail_range": (True, 2.0)}, r"tail_range\[0\] must be a finite number, got True"),
        ({"tail_range": (1.0, math.inf)}, r"tail_range\[1\] must be a finite number, got inf"),
        ({"episode": "big-job", "big_sizes": "15"}, "big_sizes must be two numbers, 0 < low < high, got '15'"),
        ({"big_sizes": (1.0, 5.0)}, r"big_sizes must be None unless episode='big-job', got \(1\.0, 5\.0\)"),
        ({"action": "priority", "symmetric_actions": True}, "symmetric_actions must be False unless action='alloc"),
        ({"action": "rule", "work_conserving": False}, "work_conserving must be True unless action='allocation' or 'a"),
        ({"rules": ["srpt"]}, r"rules must be None unless action='rule', got \['srpt'\]"),
        (
            {"scenario": "light-2", "reward": "tail", "tail_range": (100, 1e4)},
            "give a smaller tail_range.0., or another",
        ),
    ],
)
def test_arguments_that_are_refused(given: dict[str, Any], message: str) -> None:
    for make in (QueueEnv, QueueVectorEnv):
        with pytest.raises(ValueError, match=message):
            make(**given)


def test_arguments_of_the_vector_environment_that_are_refused() -> None:
    with pytest.raises(ValueError, match=r'an AutoresetMode or its value, one of "NextStep", .*, got \'NEXT_STEP\''):
        QueueVectorEnv(2, autoreset_mode="NEXT_STEP")
    with pytest.raises(ValueError, match="max_episode_steps must be an integer from 1 to 10"):
        QueueVectorEnv(2, max_episode_steps=10**20)


def test_the_largest_arguments_that_are_allowed_work() -> None:
    env = QueueEnv(jobs=10**15, reward={"moment(100)": 1e-300, "mean": 1.0}, reward_scale=1e100, **RULE)
    env.reset(seed=0)
    assert env.step(0)[1] <= 0.0


def test_tail_ranges_may_be_arrays() -> None:
    assert QueueEnv(tail_range=np.array([1.0, 100.0])).config.tail_range == (1.0, 100.0)  # type: ignore[arg-type]


# ---- the reward by default -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "given", "reward"),
    [
        ("high-load-2", {}, "tail"),
        ("high-load-4", {}, "tail"),
        ("high-load-10", {}, "tail"),
        ("low-load-4", {}, "tail"),
        ("light-2", {}, "mean"),
        ("light-2", {"tail_range": (1.0, 10.0)}, "tail"),
        ("light-2", {"reward": "tail"}, "tail"),
        ("high-load-2", {"tail_range": (1.0, 1e9)}, "mean"),
        ("impatient-100", {}, "wait"),
        ({"servers": 2, "load": 0.5, "sizes": {"law": "deterministic", "value": 1.0}}, {}, "mean"),
        ({"servers": 2, "load": 0.5, "sizes": {"law": "uniform", "low": 0.5, "high": 1.5}}, {}, "mean"),
    ],
)
def test_default_reward(scenario: Any, given: dict[str, Any], reward: str) -> None:
    assert terms(scenario, **given) == [reward]


# ---- checks ----------------------------------------------------------------------------------------------


def test_what_is_registered_as_a_class_has_no_spec_to_check() -> None:
    name = "checks/ToyClass-v0"
    gym.register(name, entry_point=Toy, max_episode_steps=5)  # type: ignore[arg-type]
    try:
        check_env(gym.make(name), sb3=False)
    finally:
        del gym.registry[name]
