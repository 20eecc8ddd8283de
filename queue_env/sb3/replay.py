"""Replay buffers that keep the discount of each transition."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from queue_env.distributions.checks import refuse
from queue_env.sb3.discounts import check_beta, discounts_of, refuse_dict

__all__ = ["TimeAwareDictReplayBuffer", "TimeAwareReplayBuffer"]


def _steps_of_algorithm() -> int:
    """Return the n_steps of the algorithm that makes a buffer just now, 1 where none does.

    Stable-Baselines3 does not tell a buffer of a class that was given to it, and only warns that n_steps is ignored;
    the one place where the algorithm can be seen is the stack of calls.
    """
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self") if frame.f_code.co_name == "_setup_model" else None
        if isinstance(caller, OffPolicyAlgorithm):
            return int(getattr(caller, "n_steps", 1))
        frame = frame.f_back
    return 1


class TimeAwareReplayBuffer(ReplayBuffer):
    """A replay buffer whose samples have the `discounts` of the transitions, for DQN, SAC, TD3, TQC, CrossQ and QR-DQN.

    These use the discounts of the samples in place of their ``gamma``, which then has no effect. It is given as
    ``replay_buffer_class``; an episode that was cut goes on in value, as in the parent class. Returns of several steps
    are not supported: the discount of a sample is that of one step.

    Args:
        buffer_size: of `ReplayBuffer`, as all but beta.
        observation_space: no `Dict`.
        *args: others of `ReplayBuffer`.
        **kwargs: others of `ReplayBuffer`.
        beta: discount rate β in 1 over the time unit of dt, for discounts exp(-β·dt) with dt from ``infos[i]["dt"]``;
            None to take them from ``infos[i]["discount"]``. It is given in ``replay_buffer_kwargs``.

    Attributes:
        discounts: shape (buffer_size, n_envs), float32.

    Raises:
        ValueError: beta is not a finite number > 0, or observations are of a `Dict` space, for which there is
            `TimeAwareDictReplayBuffer`, or the algorithm has n_steps > 1; or, when transitions are added, the infos
            lack the entry, or have discounts of another rate than beta.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        *args: Any,
        beta: float | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(self, DictReplayBuffer):
            refuse_dict(type(self).__name__, observation_space, "TimeAwareDictReplayBuffer")
        steps = max(kwargs.pop("n_steps", 1), _steps_of_algorithm())
        if steps != 1:
            refuse(type(self).__name__, "n_steps", "1: n-step returns are not supported with discounts by time", steps)
        super().__init__(buffer_size, observation_space, *args, **kwargs)
        self.beta = check_beta(type(self).__name__, beta)
        self.discounts = np.ones((self.buffer_size, self.n_envs), np.float32)

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Add a transition of each environment."""
        self.discounts[self.pos] = discounts_of(type(self).__name__, infos, self.beta)
        super().add(obs, next_obs, action, reward, done, infos)

    def _get_samples(self, batch_inds: np.ndarray, env: VecNormalize | None = None) -> ReplayBufferSamples:
        # The parent's method, which keeps the environments that it draws to itself.
        at = batch_inds, np.random.randint(0, high=self.n_envs, size=len(batch_inds))  # noqa: NPY002
        if self.optimize_memory_usage:
            following = self.observations[(batch_inds + 1) % self.buffer_size, at[1]]
        else:
            following = self.next_observations[at]
        return ReplayBufferSamples(
            observations=self._observations(self.observations[at], env),
            next_observations=self._observations(following, env),
            **self._rest_of_samples(at, env),
        )

    def _observations(self, observations: np.ndarray, env: VecNormalize | None) -> torch.Tensor:
        return self.to_torch(self._normalize_obs(observations, env))  # type: ignore[arg-type]

    def _rest_of_samples(
        self, at: tuple[NDArray[Any], NDArray[Any]], env: VecNormalize | None
    ) -> dict[str, torch.Tensor]:
        over = self.dones[at] * (1 - self.timeouts[at])
        return {
            "actions": self.to_torch(self.actions[at]),
            "dones": self.to_torch(over[:, None]),
            "rewards": self.to_torch(self._normalize_reward(self.rewards[at][:, None], env)),
            "discounts": self.to_torch(self.discounts[at][:, None]),
        }


class TimeAwareDictReplayBuffer(TimeAwareReplayBuffer, DictReplayBuffer):
    """`TimeAwareReplayBuffer` for observations of a `Dict` space."""

    def _get_samples(  # type: ignore[override]
        self, batch_inds: np.ndarray, env: VecNormalize | None = None
    ) -> DictReplayBufferSamples:
        at = batch_inds, np.random.randint(0, high=self.n_envs, size=len(batch_inds))  # noqa: NPY002
        return DictReplayBufferSamples(
            observations=self._dict_observations(self.observations, at, env),
            next_observations=self._dict_observations(self.next_observations, at, env),
            **self._rest_of_samples(at, env),
        )

    def _dict_observations(
        self, kept: dict[str, np.ndarray], at: tuple[NDArray[Any], NDArray[Any]], env: VecNormalize | None
    ) -> dict[str, torch.Tensor]:
        normal = self._normalize_obs({key: values[at] for key, values in kept.items()}, env)
        return {key: self.to_torch(values) for key, values in normal.items()}  # type: ignore[union-attr]
