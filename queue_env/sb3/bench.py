"""How fast Stable-Baselines3's PPO learns on the environment, and how much of that time the environment takes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from queue_env.sb3.adapter import make_sb3_env

__all__ = ["run_ppo_bench"]

_SYSTEMS = 64
_ROLLOUT = 128  # steps of each environment
_BATCH = 2048
_EPOCHS = 4


class _Timed(VecEnvWrapper):
    """Adds up the time that steps of the environment take."""

    seconds = 0.0

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_async(self, actions: np.ndarray) -> None:
        began = time.perf_counter()
        self.venv.step_async(actions)
        self.seconds += time.perf_counter() - began

    def step_wait(self) -> VecEnvStepReturn:
        began = time.perf_counter()
        result = self.venv.step_wait()
        self.seconds += time.perf_counter() - began
        return result


def run_ppo_bench(rollouts: int) -> dict[str, Any]:
    """Train PPO for some rollouts after a first one that is not counted.

    The settings are those of Stable-Baselines3 but for 64 environments, rollouts of 128 steps of each, minibatches of
    2048 and 4 epochs; the action is the anchor's rate. Torch has one thread: networks this small gain nothing by more,
    and lose much where other programs run.

    Args:
        rollouts: number of rollouts to time.

    Returns:
        ``environment``, ``systems``, ``threads`` (of the environment), ``steps_per_second`` (of training: rollouts and
        updates) and ``environment_share`` of the time.
    """
    torch_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    env = _Timed(make_sb3_env(num_envs=_SYSTEMS, action="anchor", observation="compact", symmetric_actions=True))
    model = PPO("MlpPolicy", env, n_steps=_ROLLOUT, batch_size=_BATCH, n_epochs=_EPOCHS, seed=0, device="cpu")
    model.learn(_ROLLOUT * _SYSTEMS)
    env.seconds, began = 0.0, time.perf_counter()
    steps = rollouts * _ROLLOUT * _SYSTEMS
    model.learn(steps, reset_num_timesteps=False)
    elapsed = time.perf_counter() - began
    env.close()
    torch.set_num_threads(torch_threads)
    return {
        "environment": "queue, anchor, compact, SB3 PPO training",
        "systems": _SYSTEMS,
        "threads": 1,
        "steps_per_second": steps / elapsed,
        "environment_share": env.seconds / elapsed,
    }
