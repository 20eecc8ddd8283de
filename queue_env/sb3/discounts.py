"""How the discounts of steps come from the infos of an environment to a rollout buffer, which is handed no infos."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from queue_env.distributions.checks import positive, refuse

__all__ = ["DiscountedRewards", "VecDiscount", "check_beta", "discounts_of", "refuse_dict"]

_ROUNDING = 1e-9


def refuse_dict(owner: str, space: spaces.Space[Any], instead: str) -> None:
    """ValueError if a space of observations is a `Dict`, for which there is another buffer."""
    if isinstance(space, spaces.Dict):
        refuse(owner, "observation_space", f"other than a Dict, for which there is {instead}", space)


def check_beta(owner: str, beta: float | None) -> float | None:
    """The discount rate as a float, or None; ValueError unless it is a finite number > 0."""
    return None if beta is None else positive(owner, "beta", beta)


def discounts_of(owner: str, infos: Sequence[Mapping[str, Any]], beta: float | None) -> NDArray[np.float64]:
    """Return the discounts of the steps with these infos, shape (num_envs,).

    Args:
        owner: who asks, for the error.
        infos: one mapping for each environment.
        beta: None to read ``"discount"``, else the rate β in exp(-β·dt) with dt from ``"dt"``.

    Raises:
        ValueError: an environment gives no such entry, or gives discounts of another rate than beta.
    """
    key = "discount" if beta is None else "dt"
    try:
        values = np.array([info[key] for info in infos], np.float64)
    except KeyError:
        where = next(i for i, info in enumerate(infos) if key not in info)
        hint = " (or give beta, to discount by infos[i]['dt'])" if beta is None else ""
        refuse(owner, "infos", f"with {key!r} for every environment{hint}", f"none in infos[{where}]")
    if beta is None:
        return values
    discounts = np.exp(-beta * values)
    for i, info in enumerate(infos):
        if "discount" in info and not math.isclose(
            info["discount"], discounts[i], rel_tol=_ROUNDING, abs_tol=_ROUNDING
        ):
            allowed = (
                f"that of the environment, whose discounts are {info['discount']:g} where it would be {discounts[i]:g}"
            )
            refuse(owner, "beta", f"left out, or {allowed}", beta)
    return discounts


class DiscountedRewards(np.ndarray[tuple[int], np.dtype[np.float32]]):
    """Rewards of a step, shape (num_envs,), that know the step's discounts.

    Where an episode is cut, `OnPolicyAlgorithm.collect_rollouts` adds gamma times the value of the last state to the
    reward, in place, and hands this array to the rollout buffer. With gamma = 1 that value is what the array has more
    than `paid`. An array computed from this one knows no discounts, for `paid` would not be what it was computed from.

    Attributes:
        paid: the rewards before anything was added.
        discounts: of the step, or None.
    """

    paid: NDArray[np.float32] | None
    discounts: NDArray[np.float64] | None

    def __new__(cls, rewards: ArrayLike, discounts: NDArray[np.float64]) -> DiscountedRewards:
        """Copy the rewards.

        Args:
            rewards: shape (num_envs,).
            discounts: shape (num_envs,).
        """
        paid = np.array(rewards, np.float32)
        made = paid.copy().view(cls)
        made.paid, made.discounts = paid, discounts
        return made

    def __array_finalize__(self, source: object) -> None:
        self.paid = self.discounts = None


class VecDiscount(VecEnvWrapper):
    """Puts the discounts of a step on its rewards, for `TimeAwareRolloutBuffer`.

    It has to be outside of all wrappers that change rewards, such as `VecNormalize`; the buffer refuses rewards without
    discounts.

    Args:
        venv: gives ``infos[i]["discount"]``, or ``infos[i]["dt"]`` if there is a beta.
        beta: discount rate β in 1 over the time unit of dt, for discounts exp(-β·dt); None where venv gives discounts.

    Raises:
        ValueError: venv is no `VecEnv`, or beta is not a finite number > 0; or, at a step, the infos lack the entry, or
            have discounts of another rate than beta.
    """

    def __init__(self, venv: VecEnv, beta: float | None = None) -> None:
        if not isinstance(venv, VecEnv):
            refuse("VecDiscount", "venv", "a VecEnv of Stable-Baselines3, as make_sb3_env makes it", venv)
        super().__init__(venv)
        self._beta = check_beta("VecDiscount", beta)

    def reset(self) -> VecEnvObs:
        """Reset all environments."""
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        """Make the step; its rewards are `DiscountedRewards`."""
        observations, rewards, dones, infos = self.venv.step_wait()
        discounts = discounts_of("VecDiscount", infos, self._beta)
        return observations, DiscountedRewards(rewards, discounts), dones, infos
