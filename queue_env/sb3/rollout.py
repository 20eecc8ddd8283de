"""Rollout buffers that discount each step by its own factor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from queue_env.distributions.checks import refuse
from queue_env.sb3.discounts import DiscountedRewards, refuse_dict

__all__ = ["TimeAwareDictRolloutBuffer", "TimeAwareRolloutBuffer"]


class TimeAwareRolloutBuffer(RolloutBuffer):
    """A rollout buffer with a discount d of each step, for PPO, A2C and TRPO.

    Given as ``rollout_buffer_class``, with ``gamma=1.0`` and `VecDiscount` as the environment's outermost wrapper::

        env = VecDiscount(make_sb3_env(beta=0.01))
        PPO("MlpPolicy", env, gamma=1.0, rollout_buffer_class=TimeAwareRolloutBuffer)

    With r the rewards and V the values, the advantages are those of generalized advantage estimation,
    A = r + d·V' - V + d·λ·A', where ' is of the next state; the terms with ' are missing at an episode's last step.
    Where an episode was cut, d·V of its last state is added to r. The algorithm itself would add gamma·V, with one
    gamma for all steps; with gamma = 1 it adds V, which is multiplied by d here, so other values are refused.

    Args:
        buffer_size: of `RolloutBuffer`, as all.
        observation_space: no `Dict`.
        *args: others of `RolloutBuffer`.
        **kwargs: others of `RolloutBuffer`; gamma has to be 1.

    Attributes:
        discounts: shape (buffer_size, n_envs), float32.

    Raises:
        ValueError: gamma is not 1, or observations are of a `Dict` space, for which there is
            `TimeAwareDictRolloutBuffer`; or rewards that are added have no discounts.

    Source: Schulman et al., High-dimensional continuous control using generalized advantage estimation (2016).
    """

    discounts: np.ndarray

    def __init__(self, buffer_size: int, observation_space: spaces.Space[Any], *args: Any, **kwargs: Any) -> None:
        if not isinstance(self, DictRolloutBuffer):
            refuse_dict(type(self).__name__, observation_space, "TimeAwareDictRolloutBuffer")
        super().__init__(buffer_size, observation_space, *args, **kwargs)
        if self.gamma != 1:
            refuse(type(self).__name__, "gamma", "1.0, since the environment discounts each step", self.gamma)

    def reset(self) -> None:
        """Empty the buffer."""
        super().reset()
        self.discounts = np.ones((self.buffer_size, self.n_envs), np.float32)

    def add(
        self,
        obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        episode_start: np.ndarray,
        value: torch.Tensor,
        log_prob: torch.Tensor,
    ) -> None:
        """Add a step of each environment, with `DiscountedRewards`; values of last states may be added to these."""
        if not isinstance(reward, DiscountedRewards) or reward.paid is None or reward.discounts is None:
            refuse(
                type(self).__name__,
                "env",
                "wrapped in VecDiscount, outside of VecNormalize",
                "rewards without discounts",
            )
        self.discounts[self.pos] = reward.discounts
        discounted = reward.paid + reward.discounts * (np.asarray(reward) - reward.paid)
        super().add(obs, action, discounted, episode_start, value, log_prob)

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: np.ndarray) -> None:
        """Compute the advantages, and the returns A + V.

        Args:
            last_values: values of the states after the last step, n_envs of them.
            dones: shape (n_envs,), whether the last step ended an episode.
        """
        going_on = 1.0 - np.vstack([self.episode_starts[1:], dones])
        next_values = np.vstack([self.values[1:], last_values.numpy(force=True).reshape(1, -1)])
        factors = self.discounts * going_on
        errors = self.rewards + factors * next_values - self.values
        advantage = np.zeros(self.n_envs)
        for step in reversed(range(self.buffer_size)):
            advantage = errors[step] + factors[step] * self.gae_lambda * advantage
            self.advantages[step] = advantage
        self.returns = self.advantages + self.values


class TimeAwareDictRolloutBuffer(TimeAwareRolloutBuffer, DictRolloutBuffer):
    """`TimeAwareRolloutBuffer` for observations of a `Dict` space."""
