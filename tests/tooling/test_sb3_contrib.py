"""The learners of sb3-contrib: with a memory, with action masks, and with discounts by time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib", reason="needs sb3-contrib: pip install sb3-contrib")

import gymnasium as gym
from gymnasium.vector import AutoresetMode, VectorWrapper
from sb3_contrib import QRDQN, TQC, MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from queue_env.sb3 import SB3VecEnv, TimeAwareReplayBuffer, make_sb3_env
from tests.tooling.watch import ID, Watch, assert_learned, assert_same_episodes, parameters_of

QUICK: dict[str, Any] = {"n_steps": 32, "batch_size": 64, "n_epochs": 2, "device": "cpu", "seed": 0}
RULES = ["srpt", "fcfs", "ps"]


def assert_learns(model: Any, watch: Watch, steps: int) -> None:
    before = parameters_of(model.policy)
    model.learn(steps)
    assert_learned(before, parameters_of(model.policy))
    assert watch.steps == model.num_timesteps == steps
    noted = model.ep_info_buffer
    assert_same_episodes(watch, [episode["l"] for episode in noted], [episode["r"] for episode in noted])


def test_recurrent_ppo() -> None:
    # What a memory is for: sizes are hidden, so what is known of a job is in the past.
    native = make_sb3_env(num_envs=4, size_knowledge="unknown", symmetric_actions=True, jobs=20)
    env = VecMonitor(native)
    settings = QUICK | {"policy_kwargs": {"lstm_hidden_size": 32}}
    model = RecurrentPPO("MlpLstmPolicy", env, **settings)
    assert_learns(model, Watch(native.venv.unwrapped), 256)
    observations = env.reset()
    first, memory = model.predict(observations, episode_start=np.ones(4, bool), deterministic=True)
    again, _ = model.predict(observations, state=memory, episode_start=np.zeros(4, bool), deterministic=True)
    fresh, _ = model.predict(observations, state=memory, episode_start=np.ones(4, bool), deterministic=True)
    assert not np.array_equal(first, again)
    np.testing.assert_allclose(first, fresh, rtol=1e-6)


def all_but_last(count: int) -> np.ndarray:
    return np.arange(len(RULES)) < count


def test_maskable_ppo_on_single_environments() -> None:
    """All rules can always run, so a mask is the user's choice: here the last rule is ruled out."""

    def make() -> Any:
        return Monitor(ActionMasker(gym.make(ID, action="rule", rules=RULES, jobs=20), lambda _: all_but_last(2)))

    env = DummyVecEnv([make, make])
    watches = [Watch(one.unwrapped) for one in env.envs]
    model = MaskablePPO("MlpPolicy", env, **QUICK)
    before = parameters_of(model.policy)
    model.learn(256)
    assert_learned(before, parameters_of(model.policy))
    for watch, one in zip(watches, env.envs, strict=True):
        assert (watch.lowest, watch.highest) == (0, 1)
        assert_same_episodes(watch, one.get_episode_lengths(), one.get_episode_rewards())
    mean, _ = evaluate_policy(model, env, n_eval_episodes=2)
    assert np.isfinite(mean)
    env.close()


class Masks(VectorWrapper):  # type: ignore[type-arg]
    """A vector environment with the method that MaskablePPO asks for, one mask for each environment."""

    def action_masks(self) -> tuple[np.ndarray, ...]:
        return tuple(all_but_last(2) for _ in range(self.num_envs))


def test_maskable_ppo_on_the_vector_environment() -> None:
    venv = gym.make_vec(ID, num_envs=4, autoreset_mode=AutoresetMode.SAME_STEP, action="rule", rules=RULES, jobs=20)
    watch = Watch(venv)
    env = VecMonitor(SB3VecEnv(Masks(venv)))
    assert get_action_masks(env).shape == (4, len(RULES))
    model = MaskablePPO("MlpPolicy", env, **QUICK)
    assert_learns(model, watch, 256)
    assert (watch.lowest, watch.highest) == (0, 1)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=2)
    assert np.isfinite(mean)
    env.close()


def test_maskable_ppo_needs_masks_or_to_be_told() -> None:
    native = make_sb3_env(num_envs=4, action="rule", rules=RULES, jobs=20)
    model = MaskablePPO("MlpPolicy", VecMonitor(native), **QUICK)
    with pytest.raises(ValueError, match="does not support action masking"):
        model.learn(128)
    watch = Watch(native.venv.unwrapped)
    model.learn(128, use_masking=False)
    assert watch.steps == 128
    assert watch.highest == 2


@pytest.mark.parametrize("name", ["TQC", "QRDQN"])
def test_discounts_by_time(name: str) -> None:
    action = "anchor" if name == "TQC" else "rule"
    native = make_sb3_env(num_envs=4, beta=0.01, action=action, observation="compact", jobs=20)
    model = {"TQC": TQC, "QRDQN": QRDQN}[name](
        "MlpPolicy",
        VecMonitor(native),
        replay_buffer_class=TimeAwareReplayBuffer,
        learning_starts=64,
        batch_size=32,
        policy_kwargs={"net_arch": [32, 32]},
        device="cpu",
        seed=0,
    )
    assert_learns(model, Watch(native.venv.unwrapped), 256)
    discounts = model.replay_buffer.sample(64).discounts.numpy()
    assert len(np.unique(discounts)) > 10
    assert ((discounts > 0) & (discounts <= 1)).all()
