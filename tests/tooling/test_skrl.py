"""skrl trains on the environment and on the vector environment, in the autoreset modes that it can use."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("skrl", reason="needs skrl: pip install skrl")

import gymnasium as gym
import torch
from gymnasium.vector import AutoresetMode
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from torch import nn

from tests.tooling.watch import ID, Watch, assert_learned, assert_same_episodes, parameters_of

NUM_ENVS, ROLLOUT, STEPS = 4, 32, 128
ANCHOR: dict[str, Any] = {"action": "anchor", "observation": "compact", "symmetric_actions": True, "jobs": 20}
RULE: dict[str, Any] = {"action": "rule", "rules": ["srpt", "fcfs", "ps"], "jobs": 20}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    # skrl logs to the standard error of when it was imported, which pytest has closed since.
    monkeypatch.setattr(logging.getLogger("skrl"), "handlers", [logging.NullHandler()])


def layers(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 32), nn.Tanh(), nn.Linear(32, outputs))


class Gaussian(GaussianMixin, Model):
    def __init__(self, env: Any, *, clip_actions: bool) -> None:
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
        GaussianMixin.__init__(self, clip_actions=clip_actions)
        self.net = layers(self.num_observations, self.num_actions)
        self.log_std = nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[torch.Tensor, dict[str, Any]]:
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Categorical(CategoricalMixin, Model):
    def __init__(self, env: Any) -> None:
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)
        self.net = layers(self.num_observations, self.num_actions)

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[torch.Tensor, dict[str, Any]]:
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    def __init__(self, env: Any) -> None:
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
        DeterministicMixin.__init__(self)
        self.net = layers(self.num_observations, 1)

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[torch.Tensor, dict[str, Any]]:
        return self.net(inputs["observations"]), {}


def train(gym_env: Any, directory: Path, steps: int = STEPS, *, clip_actions: bool = True) -> Any:
    """Train PPO for some steps of all environments, see that it learns, and return the agent."""
    env = wrap_env(gym_env, verbose=False)
    discrete = isinstance(env.action_space, gym.spaces.Discrete)
    policy = Categorical(env) if discrete else Gaussian(env, clip_actions=clip_actions)
    # An interval of 0 would write nothing, but note nothing either.
    experiment = {"directory": str(directory), "write_interval": 10**9, "checkpoint_interval": 0}
    agent = PPO(
        models={"policy": policy, "value": Value(env)},
        memory=RandomMemory(memory_size=ROLLOUT, num_envs=env.num_envs, device="cpu"),
        observation_space=env.observation_space,
        action_space=env.action_space,
        device="cpu",
        cfg=PPO_CFG(
            rollouts=ROLLOUT, learning_epochs=2, mini_batches=2, time_limit_bootstrap=True, experiment=experiment
        ),
    )
    settings = {"timesteps": steps, "headless": True, "disable_progressbar": True, "close_environment_at_exit": False}
    trainer = SequentialTrainer(env=env, agents=agent, cfg=settings)
    before = parameters_of(policy)
    trainer.train()
    assert_learned(before, parameters_of(policy))
    assert torch.isfinite(agent.memory.get_tensor_by_name("advantages")).all()
    return agent


def episodes(agent: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lengths and returns of the episodes that the agent has noted, as it would write them to TensorBoard."""
    return np.ravel(agent._track_timesteps), np.ravel(agent._track_rewards)


@pytest.mark.parametrize("arguments", [ANCHOR, RULE], ids=["anchor", "rule"])
def test_single_environment(arguments: dict[str, Any], tmp_path: Path) -> None:
    env = gym.make(ID, **arguments)
    watch = Watch(env.unwrapped)
    agent = train(env, tmp_path)
    assert watch.steps == STEPS
    assert_same_episodes(watch, *episodes(agent))


@pytest.mark.parametrize("observation", ["flat", "dict"])
def test_observations(observation: str, tmp_path: Path) -> None:
    envs = gym.make_vec(ID, num_envs=NUM_ENVS, observation=observation, jobs=20)
    watch = Watch(envs)
    agent = train(envs, tmp_path, ROLLOUT)
    assert watch.steps + len(watch.lengths) >= NUM_ENVS * ROLLOUT > watch.steps - 1
    columns = gym.spaces.flatdim(envs.single_observation_space)
    assert agent.memory.get_tensor_by_name("observations").shape == (ROLLOUT, NUM_ENVS, columns)


@pytest.mark.parametrize("arguments", [ANCHOR, RULE], ids=["anchor", "rule"])
def test_same_step(arguments: dict[str, Any], tmp_path: Path) -> None:
    envs = gym.make_vec(ID, num_envs=NUM_ENVS, autoreset_mode=AutoresetMode.SAME_STEP, **arguments)
    watch = Watch(envs)
    agent = train(envs, tmp_path)
    assert watch.steps == NUM_ENVS * STEPS
    assert_same_episodes(watch, *episodes(agent))


def test_next_step_makes_a_transition_of_every_reset(tmp_path: Path) -> None:
    # The calls that only reset are stored and trained on, with reward zero. They lengthen all episodes but the first.
    envs = gym.make_vec(ID, num_envs=NUM_ENVS, **ANCHOR)
    watch = Watch(envs)
    agent = train(envs, tmp_path)
    assert watch.steps < NUM_ENVS * STEPS
    lengths, returns = episodes(agent)
    np.testing.assert_array_equal(lengths[:NUM_ENVS], watch.lengths[:NUM_ENVS])
    np.testing.assert_array_equal(lengths[NUM_ENVS:], np.array(watch.lengths[NUM_ENVS:]) + 1)
    assert len(lengths) > NUM_ENVS
    np.testing.assert_allclose(returns, watch.returns, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_what_follows_a_truncation(mode: AutoresetMode) -> None:
    # skrl bootstraps from it: the episode's own last state under NEXT_STEP, the next start under SAME_STEP.
    env = wrap_env(gym.make_vec(ID, num_envs=NUM_ENVS, autoreset_mode=mode, **ANCHOR), verbose=False)
    env.reset()
    is_start, ends = [], 0
    for _ in range(STEPS):
        observations, _, _, truncated, _ = env.step(torch.zeros(NUM_ENVS, 1))
        last = observations[truncated.squeeze(-1)]
        ends += len(last)
        # The fourth number is the time since the last decision, and only at a start there was none.
        is_start += (last[:, 3] == 0).tolist()
    assert ends > NUM_ENVS
    assert all(is_start) if mode is AutoresetMode.SAME_STEP else not any(is_start)


def test_disabled_is_an_error_of_the_environment(tmp_path: Path) -> None:
    # skrl does not reset those that are over. The environment does not let it go on in silence.
    envs = gym.make_vec(ID, num_envs=NUM_ENVS, autoreset_mode=AutoresetMode.DISABLED, **ANCHOR)
    with pytest.raises(ValueError, match="reset those that are over"):
        train(envs, tmp_path)


@pytest.mark.parametrize("clip", [False, True])
def test_actions_are_clipped_only_if_asked(clip: bool, tmp_path: Path) -> None:
    envs = gym.make_vec(ID, num_envs=NUM_ENVS, **ANCHOR)
    watch = Watch(envs)
    train(envs, tmp_path, ROLLOUT, clip_actions=clip)
    assert (watch.lowest >= -1 and watch.highest <= 1) is clip
