"""Both environments against the checkers: every id, every combination, every autoreset mode."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import queue_env
from queue_env.checks import check_env, check_vector_env
from queue_env.registration import IDS

ACTIONS = ("allocation", "anchor", "priority", "rule", "threshold")
OBSERVATIONS = ("flat", "dict", "compact", "summary")
EPISODES: dict[str, dict[str, Any]] = {
    "jobs": {"jobs": 25},
    "horizon": {"horizon": 20.0},
    "interval": {"jobs": 25, "decision_interval": 0.7},
    "big-job": {"big_sizes": (1.0, 5.0)},
}
REWARDS: tuple[Any, ...] = ("tail", {"mean": 0.5, "slowdown": 1.0, "moment(2)": 0.1, "exceed(3)": 1.0, "wait": 1.0})
COMBINATIONS = [
    (observation, action, episode, reward)
    for observation, action, episode, reward in product(OBSERVATIONS, ACTIONS, EPISODES, REWARDS)
    if (observation == "summary") == (action == "threshold")
    and not (observation == "compact" and action in ("allocation", "priority"))
]


# Short enough that several episodes of each system end within a few dozen steps.
SHORT_EPISODES: dict[str, dict[str, Any]] = {
    "jobs": {"jobs": 8},
    "horizon": {"horizon": 7.0},
    "interval": {"jobs": 8, "decision_interval": 0.7},
    "big-job": {"big_sizes": (1.0, 5.0)},
}


def arguments(
    observation: str, action: str, episode: str, reward: Any, lengths: dict[str, dict[str, Any]] = EPISODES
) -> dict[str, Any]:
    kind = "jobs" if episode == "interval" else episode
    return {"observation": observation, "action": action, "episode": kind, "reward": reward, **lengths[episode]}


@pytest.mark.parametrize("name", IDS)
def test_every_id_passes_the_checkers(name: str) -> None:
    env = gym.make(name)
    # SB3 advises ranges of [-1, 1], which `symmetric_actions` gives.
    check_env(env, steps=40, skip=["render"], allow=["symmetric"])
    env.close()


@pytest.mark.parametrize("name", ["MGn-v0", "Light2-v0"])
def test_symmetric_actions_pass_without_any_warning(name: str) -> None:
    check_env(gym.make(f"queue_env/{name}", symmetric_actions=True), steps=40, skip=["render"])


@pytest.mark.parametrize(("observation", "action", "episode", "reward"), COMBINATIONS)
def test_every_combination_passes_the_checkers(observation: str, action: str, episode: str, reward: Any) -> None:
    env = queue_env.QueueEnv(**arguments(observation, action, episode, reward))
    check_env(env, steps=40, allow=["symmetric"])


@pytest.mark.parametrize(("observation", "action", "episode", "reward"), COMBINATIONS)
def test_vector_is_the_single_environments(observation: str, action: str, episode: str, reward: Any) -> None:
    given = arguments(observation, action, episode, reward, SHORT_EPISODES)
    check_vector_env(
        lambda count, mode: queue_env.QueueVectorEnv(count, autoreset_mode=mode, **given),
        lambda: queue_env.QueueEnv(**given),
        modes=AutoresetMode,
        steps=48,
    )


@pytest.mark.parametrize(
    "given",
    [
        {"scenario": "impatient-100", "action": "rule", "jobs": 40},
        {"size_knowledge": "unknown", "jobs": 25},
        {"scenario": "impatient-100", "action": "threshold", "jobs": 40},
        {"scenario": "impatient-dhr-100", "action": "threshold", "size_knowledge": "unknown", "jobs": 40},
        {"scenario": "high-load-4", "action": "threshold", "symmetric_actions": True, "capacity": 12, "jobs": 60},
        {"allocation_in_info": True, "jobs": 25},
        {"scenario": "high-load-4", "capacity": 12, "slots": 11, "action": "priority", "jobs": 60},
        {"work_conserving": False, "capacity": 20, "jobs": 60},
    ],
)
def test_vector_is_the_single_environments_for_other_arguments(given: dict[str, Any]) -> None:
    check_vector_env(
        lambda count, mode: queue_env.QueueVectorEnv(count, autoreset_mode=mode, threads=2, **given),
        lambda: queue_env.QueueEnv(**given),
        modes=AutoresetMode,
        steps=300,
    )


@pytest.mark.parametrize("count", [9, 150])
def test_threads_change_nothing(count: int) -> None:
    def run(threads: int) -> list[Any]:
        env = queue_env.QueueVectorEnv(count, threads=threads, jobs=20, autoreset_mode="SameStep")
        env.reset(seed=3)
        env.action_space.seed(0)
        found = [env.step(env.action_space.sample())[:4] for _ in range(200)]
        env.close()
        return found

    for one, three in zip(run(1), run(3), strict=True):
        for a, b in zip(one, three, strict=True):
            np.testing.assert_array_equal(a, b)


def test_spec_goes_through_json_and_ids_name_their_module() -> None:
    env = gym.make("queue_env:queue_env/MGn-v0", scenario="high-load-4", reward={"tail": 1.0}, jobs=10)
    assert env.spec is not None
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.config == env.unwrapped.config  # type: ignore[attr-defined]
    assert json.loads(env.spec.to_json())["kwargs"]["scenario"] == "high-load-4"


def test_make_vec_makes_the_native_environment() -> None:
    envs = gym.make_vec("queue_env/MGn-v0", num_envs=3, action="anchor", observation="compact")
    assert isinstance(envs.unwrapped, queue_env.QueueVectorEnv)
    envs = gym.make_vec("queue_env/MGn-v0", num_envs=2, max_episode_steps=5)
    envs.reset(seed=0)
    for _ in range(5):
        truncated = envs.step(envs.action_space.sample())[3]
    assert truncated.all()


def run_on(env: queue_env.QueueEnv, actions: Any) -> list[Any]:
    return [env.step(action)[1:3] for action in actions]


def test_snapshots_copies_and_pickles_go_on_alike() -> None:
    env = queue_env.QueueEnv(jobs=10_000)
    env.reset(seed=1)
    env.action_space.seed(2)
    actions = [env.action_space.sample() for _ in range(700)]
    run_on(env, actions[:100])
    saved, copied, pickled = env.snapshot(), copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    expected = run_on(env, actions[100:])
    assert run_on(copied, actions[100:]) == run_on(pickled, actions[100:]) == expected
    env.reset(options={"snapshot": pickle.loads(pickle.dumps(saved))})
    assert run_on(env, actions[100:]) == expected
    other = queue_env.QueueEnv(jobs=10_000)
    other.reset(seed=9, options={"snapshot": saved})
    assert other.snapshot().sizes.tolist() == saved.sizes.tolist()
    assert run_on(other, actions[100:]) != expected


def test_initial_and_injected_jobs() -> None:
    env = queue_env.QueueEnv(observation="dict")
    jobs = [{"size": 5.0, "remaining": 2.0, "age": 4.0}, {"size": 9.0, "age": 1.0}]
    observation, info = env.reset(seed=0, options={"jobs": jobs, "job": {"size": 1.0}})
    assert info["dt"] == 0.0
    np.testing.assert_array_equal(observation["remaining"][:4], [1.0, 2.0, 9.0, 0.0])
    np.testing.assert_array_equal(observation["age"][:4], [0.0, 4.0, 1.0, 0.0])
    np.testing.assert_array_equal(observation["anchor"][:4], [0.0, 0.0, 1.0, 0.0])


def test_a_workload_is_run_to_its_end_and_then_the_stream_goes_on() -> None:
    workload = queue_env.Workload([0.0, 1.0, 1.5], [2.0, 2.0, 0.25])
    env = queue_env.QueueEnv(overrides={"servers": 1, "load": 0.5}, action="rule", rules=["srpt"], records=True)
    env.reset(seed=0, options={"workload": workload})
    over = False
    while not over:
        *_, terminated, truncated, info = env.step(0)
        over = terminated or truncated
    assert info["reason"].startswith("workload")
    assert env.records()["departure_time"].tolist() == [2.25, 4.25, 1.75]
    assert info["summary"]["served"] == 3
    env.reset()
    assert env.step(0)[4]["dt"] > 0


@pytest.mark.parametrize("given", [{}, {"episode": "big-job", "big_sizes": (1.0, 5.0)}])
def test_records_have_room_for_jobs_that_are_there_at_the_start(given: dict[str, Any]) -> None:
    env = queue_env.QueueEnv(records=True, jobs=10_000, **given)
    env.reset(seed=0, options={"jobs": [{"size": 1.0 + i} for i in range(900)]})
    np.testing.assert_array_equal(env.records()["size"][:900], 1.0 + np.arange(900))
    other = queue_env.QueueEnv(records=True, jobs=10_000, **given)
    other.reset(seed=1, options={"snapshot": env.snapshot()})
    for _ in range(50):
        other.step(other.action_space.sample())
    assert len(other.records()) >= 900


def test_gymnasium_learns_of_the_ids_whichever_is_imported_first() -> None:
    made = "print(gymnasium.make('queue_env/Light2-v0').spec.id)"
    for first, second in (("queue_env", "gymnasium"), ("gymnasium", "queue_env")):
        code = f"import {first}\nimport {second}\n{made}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "queue_env/Light2-v0\n"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"action": "alloc"}, "action"),
        ({"slots": 6}, "slots"),
        ({"observation": "compact"}, "observation"),
        ({"episode": "big-job", "scenario": "impatient-100"}, "episode"),
        ({"jobs": 0}, "jobs"),
        ({"decision_interval": -1}, "decision_interval"),
        ({"action": "rule", "rules": ["super-server"]}, "rules"),
        ({"reward": "tale"}, "tale"),
        ({"size_knowledge": "unknown", "action": "anchor"}, "size_knowledge"),
        ({"work_conserving": 1}, "work_conserving"),
        ({"tail_range": (5, 1)}, "tail_range"),
        ({"overrides": 5}, "overrides"),
    ],
)
def test_bad_arguments_are_named(given: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        queue_env.QueueEnv(**given)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"job": {"sizes": 1.0}}, "job"),
        ({"jobs": [{"size": 1.0, "remaining": 2.0}]}, "remaining"),
        ({"snapshot": 3}, "snapshot"),
        (5, "options"),
        ({"workloads": None}, "options"),
    ],
)
def test_bad_options_are_named(options: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        queue_env.QueueEnv().reset(options=options)


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_rendering(mode: str) -> None:
    env = queue_env.QueueEnv(render_mode=mode)
    env.reset(seed=0)
    for _ in range(30):
        env.step(env.action_space.sample())
    drawn = env.render()
    assert isinstance(drawn, str) if mode == "ansi" else drawn.shape[2] == 3
    env.close()
