"""Discounting by time: what follows a step is worth exp(-β·dt), where dt is the time that the step took.

Decisions come at events, so steps take unequal times. One factor for all steps would make an agent that sees many
events look less far ahead in time. A step's reward counts as paid at the step's start; the value of the state after it
is multiplied by exp(-β·dt).

Source: Puterman, Markov Decision Processes (1994), chapter 11 (semi-Markov decision processes).
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from queue_env.distributions.checks import positive, refuse

__all__ = ["TimeDiscount", "TimeDiscountVector"]

_ALLOWED = "the time the step took, a number >= 0, at every step"


class TimeDiscount(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Adds ``info["discount"]``: exp(-β·dt) of the step just made, with dt from ``info["dt"]``; 1.0 on reset.

    Args:
        env: its steps say in ``info["dt"]`` how much time they took.
        beta: discount rate β, in 1 over the time unit of dt.

    Raises:
        ValueError: beta is not a finite number > 0; or, at a step, there is no ``info["dt"]`` >= 0.
    """

    def __init__(self, env: gym.Env[Any, Any], beta: float) -> None:
        RecordConstructorArgs.__init__(self, beta=beta)
        gym.Wrapper.__init__(self, env)
        self.beta = positive("TimeDiscount", "beta", beta)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; the discount is 1.0."""
        observation, info = self.env.reset(seed=seed, options=options)
        info["discount"] = 1.0
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and add the step's discount."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        dt = info.get("dt")
        if not isinstance(dt, Real) or not float(dt) >= 0:
            refuse("TimeDiscount", "info['dt']", _ALLOWED, dt)
        info["discount"] = math.exp(-self.beta * float(dt))
        return observation, reward, terminated, truncated, info


class TimeDiscountVector(VectorWrapper):
    """Adds ``infos["discount"]``, shape (num_envs,): exp(-β·dt) of the steps just made, with dt from ``infos["dt"]``.

    The discount belongs to the same transition as the reward beside it, also where an episode ends:

    - ``NEXT_STEP``: the call that only resets an environment is no transition; its discount is 1.0.
    - ``SAME_STEP``: where an episode ends, ``infos["dt"]`` is that of the reset, so dt is taken from
      ``infos["final_info"]``. The discount is in ``infos["discount"]`` and in ``infos["final_info"]["discount"]``.
    - ``DISABLED``: stepping an environment whose episode is over is no transition; its discount is 1.0.

    On reset the discount is 1.0. The mask ``infos["_discount"]`` is True everywhere, but for the environments that a
    ``reset_mask`` leaves out.

    Args:
        env: its steps say in ``infos["dt"]`` how much time they took, and its metadata have an ``autoreset_mode``.
        beta: discount rate β, in 1 over the time unit of dt.

    Raises:
        ValueError: beta is not a finite number > 0, or the autoreset mode is unknown; or, at a step, an environment
            gives no dt >= 0.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], beta: float) -> None:
        super().__init__(env)
        self.beta = positive("TimeDiscountVector", "beta", beta)
        self.autoreset_mode = env.metadata.get("autoreset_mode")
        if not isinstance(self.autoreset_mode, AutoresetMode):
            refuse("TimeDiscountVector", "env.metadata['autoreset_mode']", "an AutoresetMode", self.autoreset_mode)
        self._over = np.zeros(self.num_envs, np.bool_)  # the episode is over, and no reset has followed

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environments, or those of ``options["reset_mask"]``; their discount is 1.0."""
        # Read before it is handed on: some environments take the mask out of the mapping.
        mask = None if options is None else options.get("reset_mask")
        observations, infos = self.env.reset(seed=seed, options=options)
        chosen = np.ones(self.num_envs, np.bool_) if mask is None else np.array(mask, np.bool_)
        self._over &= ~chosen
        infos["discount"], infos["_discount"] = np.ones(self.num_envs), chosen
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step the environments and add the discounts of the steps."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        infos["discount"] = np.exp(-self.beta * self._step_times(infos))
        infos["_discount"] = np.ones(self.num_envs, np.bool_)
        if "final_info" in infos:
            final, ended = infos["final_info"], infos["_final_info"]
            final["discount"], final["_discount"] = np.where(ended, infos["discount"], 0.0), ended.copy()
        done = terminations | truncations
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            self._over = done
        elif self.autoreset_mode is AutoresetMode.DISABLED:
            self._over |= done
        return observations, rewards, terminations, truncations, infos

    def _step_times(self, infos: dict[str, Any]) -> NDArray[np.float64]:
        """Return the time of each environment's transition, 0 where there was none."""
        times = _masked_times(infos, self.num_envs)
        if "final_info" in infos:
            times = np.where(infos["_final_info"], _masked_times(infos["final_info"], self.num_envs), times)
        times[self._over] = 0.0
        bad = np.flatnonzero(~(times >= 0))
        if bad.size:
            refuse("TimeDiscountVector", f"infos['dt'] of environment {bad[0]}", _ALLOWED, float(times[bad[0]]))
        return times


def _masked_times(infos: dict[str, Any], count: int) -> NDArray[np.float64]:
    """Return the entry dt of infos, NaN where it is masked or not there."""
    if "dt" not in infos:
        return np.full(count, np.nan)
    return np.where(infos["_dt"], infos["dt"], np.nan)
