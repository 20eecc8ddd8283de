"""Stable-Baselines3 takes the environments, native and one by one: a few hundred steps of its algorithms."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")

import gymnasium as gym
import stable_baselines3
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from queue_env.sb3 import make_sb3_env
from tests.tooling.watch import ID, Watch, assert_learned, assert_same_episodes, parameters_of

QUICK = {"n_steps": 32, "batch_size": 64, "n_epochs": 2, "device": "cpu", "seed": 0}
ANCHOR = {"action": "anchor", "observation": "compact", "symmetric_actions": True, "jobs": 20}
OFF_POLICY = {
    "learning_starts": 64,
    "batch_size": 32,
    "policy_kwargs": {"net_arch": [32, 32]},
    "device": "cpu",
    "seed": 0,
}

CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "ppo-anchor": (
        "PPO",
        "MlpPolicy",
        {"action": "anchor", "observation": "compact", "episode": "big-job", "big_sizes": (2, 4)},
        QUICK,
    ),
    "ppo-dict": ("PPO", "MultiInputPolicy", {"observation": "dict"}, QUICK),
    "a2c-priority": ("A2C", "MlpPolicy", {"action": "priority"}, {"n_steps": 16, "device": "cpu", "seed": 0}),
    "sac-allocation": (
        "SAC",
        "MlpPolicy",
        {"symmetric_actions": True},
        OFF_POLICY,
    ),
    "dqn-rule": (
        "DQN",
        "MlpPolicy",
        {"action": "rule"},
        OFF_POLICY,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_learners_train(case: str) -> None:
    name, policy, arguments, settings = CASES[case]
    native = make_sb3_env(num_envs=4, jobs=20, **arguments)
    watch = Watch(native.venv.unwrapped)
    # Without a VecMonitor it says nothing of episodes: it puts one around a single environment only.
    env = VecMonitor(native)
    model = getattr(stable_baselines3, name)(policy, env, **deepcopy(settings))
    before = parameters_of(model.policy)
    model.learn(256)
    assert_learned(before, parameters_of(model.policy))
    assert watch.steps == model.num_timesteps == 256
    if arguments.get("episode") != "big-job":
        assert set(watch.served) == {20}
    noted = model.ep_info_buffer
    assert_same_episodes(watch, [episode["l"] for episode in noted], [episode["r"] for episode in noted])
    action, _ = model.predict(env.reset(), deterministic=True)
    assert len(action) == 4
    env.close()


def test_its_own_make_vec_env() -> None:
    env = make_vec_env(ID, n_envs=4, seed=0, env_kwargs=ANCHOR)
    watches = [Watch(one.unwrapped) for one in env.envs]
    model = PPO("MlpPolicy", VecNormalize(env), **QUICK)
    before = parameters_of(model.policy)
    model.learn(512)
    assert_learned(before, parameters_of(model.policy))
    for one, watch in zip(env.envs, watches, strict=True):
        assert set(watch.served) == {20}
        assert -1 <= watch.lowest < watch.highest <= 1
        # The Monitor rounds returns to six digits after the point.
        assert_same_episodes(watch, one.get_wrapper_attr("get_episode_lengths")(), one.get_episode_rewards())
    normalised = model.get_vec_normalize_env()
    assert np.isfinite(normalised.obs_rms.mean).all()
    assert np.isfinite(normalised.ret_rms.var).all()
    env.close()


def test_both_ways_are_the_same_environment() -> None:
    native, single = make_sb3_env(num_envs=3, **ANCHOR), make_vec_env(ID, n_envs=3, env_kwargs=ANCHOR)
    assert native.observation_space == single.observation_space
    assert native.action_space == single.action_space
    native.seed(5), single.seed(5)
    np.testing.assert_array_equal(native.reset(), single.reset())
    ends = 0
    rng = np.random.default_rng(0)
    for _ in range(100):
        actions = rng.uniform(-1, 1, (3, 1))
        shown, rewards, dones, infos = native.step(actions)
        other_shown, other_rewards, other_dones, other_infos = single.step(actions)
        np.testing.assert_array_equal(shown, other_shown)
        np.testing.assert_array_equal(rewards, other_rewards)
        np.testing.assert_array_equal(dones, other_dones)
        for i in np.flatnonzero(dones):
            ends += 1
            assert infos[i]["TimeLimit.truncated"] is other_infos[i]["TimeLimit.truncated"] is True
            np.testing.assert_array_equal(infos[i]["terminal_observation"], other_infos[i]["terminal_observation"])
    assert ends > 3


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    env = VecNormalize(make_sb3_env(num_envs=4, **ANCHOR))
    model = PPO("MlpPolicy", env, **QUICK)
    model.learn(256)
    model.save(tmp_path / "model")
    env.save(str(tmp_path / "normaliser"))

    again = VecNormalize.load(str(tmp_path / "normaliser"), make_sb3_env(num_envs=4, **ANCHOR))
    again.training = False
    loaded = PPO.load(tmp_path / "model", env=again, device="cpu")
    np.testing.assert_array_equal(again.obs_rms.mean, env.obs_rms.mean)
    again.seed(7)
    observations = again.reset()
    assert np.isfinite(observations).all()
    expected, _ = model.predict(observations, deterministic=True)
    actual, _ = loaded.predict(observations, deterministic=True)
    np.testing.assert_array_equal(actual, expected)
    before = parameters_of(loaded.policy)
    loaded.learn(256, reset_num_timesteps=False)
    assert_learned(before, parameters_of(loaded.policy))
    assert loaded.num_timesteps == 512


@pytest.mark.parametrize("kind", ["native", "own", "single"])
def test_evaluate_policy(kind: str) -> None:
    env: Any
    if kind == "native":
        env = make_sb3_env(num_envs=2, **ANCHOR)
        watches = [Watch(env.venv.unwrapped)]
        env = VecMonitor(env)
    elif kind == "own":
        env = make_vec_env(ID, n_envs=2, seed=0, env_kwargs=ANCHOR)
        watches = [Watch(one.unwrapped) for one in env.envs]
    else:
        env = Monitor(gym.make(ID, **ANCHOR))
        watches = [Watch(env.unwrapped)]
    model = PPO("MlpPolicy", env, **QUICK | {"batch_size": 32})
    returns, lengths = evaluate_policy(model, env, n_eval_episodes=6, return_episode_rewards=True)
    assert len(returns) == len(lengths) == 6
    true = [pair for watch in watches for pair in zip(watch.lengths, watch.returns, strict=True)]
    for length, total in zip(lengths, returns, strict=True):
        assert any(length == n and total == pytest.approx(r, rel=1e-5, abs=1e-5) for n, r in true)
    assert all(np.isfinite(returns))
