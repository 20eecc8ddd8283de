"""A vector environment of Gymnasium as a ``VecEnv`` of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from queue_env.distributions.checks import refuse
from queue_env.wrappers import TimeDiscountVector

__all__ = ["SB3VecEnv", "make_sb3_env"]

# What is handed on of the infos, where the environment gives it. There is no more of it, since the loop over
# environments is what an adapter costs.
_AT_RESET = ("dt", "weight")
_AT_STEP = (*_AT_RESET, "discount")
_AT_END = (*_AT_STEP, "summary", "reason")

_CUT = "TimeLimit.truncated"  # as Stable-Baselines3 calls it

_HOW = (
    "AutoresetMode.SAME_STEP, as gymnasium.make_vec(id, num_envs, vectorization_mode='vector_entry_point', "
    "autoreset_mode=AutoresetMode.SAME_STEP) makes it"
)


def make_sb3_env(
    id: str = "queue_env/MGn-v0",
    num_envs: int = 64,
    *,
    threads: int = 1,
    beta: float | None = None,
    **arguments: Any,
) -> SB3VecEnv:
    """Make a native vector environment for Stable-Baselines3.

    Args:
        id: id of a registered environment with a native vector environment.
        num_envs: number of environments.
        threads: threads that share them.
        beta: discount rate in 1 over the workload's time unit, which adds ``infos[i]["discount"]``; None adds nothing.
        **arguments: those of the environment.

    Raises:
        ValueError: an argument is not allowed.
    """
    venv = gym.make_vec(
        id,
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        threads=threads,
        **arguments,
    )
    return SB3VecEnv(venv if beta is None else TimeDiscountVector(venv, beta))


class SB3VecEnv(VecEnv):
    """A vector environment of Gymnasium as a ``VecEnv`` of Stable-Baselines3.

    ``infos[i]`` of a step has ``"TimeLimit.truncated"`` (whether the episode was cut, and did not end by itself), and
    ``"dt"``, ``"discount"`` and ``"weight"`` where the environment gives them. At the end of an episode they are those
    of its last step, and there are ``"terminal_observation"``, ``"summary"`` and ``"reason"`` besides; what the reset
    that follows says is in ``reset_infos[i]``. Nothing else of the infos is handed on.

    The environments are inside one vector environment and have no attributes or methods of their own: `get_attr`,
    `set_attr` and `env_method` are about the vector environment, which all of them share.

    Args:
        venv: a vector environment in the mode ``SAME_STEP``, which returns new arrays at every step.

    Raises:
        ValueError: venv is in another mode.
    """

    def __init__(self, venv: VectorEnv[Any, Any, Any]) -> None:
        mode = venv.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            refuse("SB3VecEnv", "autoreset_mode of venv", _HOW, mode)
        self.venv = venv
        super().__init__(venv.num_envs, venv.single_observation_space, venv.single_action_space)
        self.metadata = venv.metadata
        self.spec = venv.spec
        self._actions: Any = None

    # ---- episodes and steps ----------------------------------------------------------------------

    def set_options(self, options: Any = None) -> None:
        """Set the options of the next reset, one mapping for all environments.

        Raises:
            ValueError: options is a list, with other options for each environment.
        """
        if options is not None and not isinstance(options, Mapping):
            refuse("SB3VecEnv", "options", "one mapping for all environments", options)
        super().set_options(None if options is None else dict(options))

    def reset(self) -> VecEnvObs:
        """Reset all environments and return their observations; with the seed s of `seed`, environment i gets s+i."""
        observations, infos = self.venv.reset(seed=self._seeds[0], options=self._options[0] or None)
        self.reset_infos = [{} for _ in range(self.num_envs)]
        _fill(self.reset_infos, infos, _AT_RESET)
        # Seeds and options are for one reset.
        self._reset_seeds()
        self._reset_options()
        return observations  # type: ignore[no-any-return]

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions of the next step, shape (num_envs, ...)."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Make the step.

        Returns:
            Observations, rewards (num_envs,) float32, whether episodes are over (num_envs,) bool, and a list of infos.
        """
        observations, rewards, terminated, truncated, infos = self.venv.step(self._actions)
        dones = terminated | truncated
        rows: list[dict[str, Any]] = [{_CUT: cut} for cut in (truncated & ~terminated).tolist()]
        _fill(rows, infos, _AT_STEP)
        for i in np.flatnonzero(dones).tolist():
            self.reset_infos[i] = {key: rows[i][key] for key in _AT_RESET if key in rows[i]}
            last = _entries(infos.get("final_info", {}), _AT_END, i)
            rows[i] = {_CUT: rows[i][_CUT], "terminal_observation": infos["final_obs"][i], **last}
        # A copy in any case: Stable-Baselines3 adds to rewards in place.
        return observations, rewards.astype(np.float32), dones, rows

    def close(self) -> None:
        """Close the vector environment."""
        self.venv.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return a frame of each environment, None in other modes than "rgb_array"."""
        frames: Any = self.venv.render() if self.render_mode == "rgb_array" else None
        return [None] * self.num_envs if frames is None else list(frames)

    # ---- attributes ------------------------------------------------------------------------------

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of the vector environment, or else of what it wraps, once for each environment."""
        return [getattr(self._owner(attr_name), attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute where `get_attr` finds it, or else of the innermost environment.

        Raises:
            ValueError: indices does not name all environments, which share the attribute.
        """
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            refuse("SB3VecEnv", "indices", "None: the environments share their attributes", indices)
        try:
            owner = self._owner(attr_name)
        except AttributeError:
            owner = self.venv.unwrapped
        setattr(owner, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Call a method of the vector environment once; a tuple of num_envs results is one for each environment."""
        result = getattr(self._owner(method_name), method_name)(*args, **kwargs)
        shared = not isinstance(result, tuple) or len(result) != self.num_envs
        return [result if shared else result[i] for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Whether the vector environment has such a wrapper, once for each environment."""
        wrapped = any(isinstance(layer, wrapper_class) for layer in self._layers())
        return [wrapped for _ in self._get_indices(indices)]

    def _layers(self) -> Iterator[VectorEnv[Any, Any, Any]]:
        """From the outermost wrapper to the environment."""
        layer = self.venv
        yield layer
        while isinstance(layer, VectorWrapper):
            layer = layer.env
            yield layer

    def _owner(self, name: str) -> VectorEnv[Any, Any, Any]:
        for layer in self._layers():
            if hasattr(layer, name):
                return layer
        raise AttributeError(f"{self.venv} has no attribute {name!r}")


def _fill(rows: Sequence[dict[str, Any]], infos: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Put numbers in a dict of each environment, those of the keys that it has."""
    for key in keys:
        if key in infos:
            given: NDArray[np.bool_] = infos[f"_{key}"]
            chosen = rows if given.all() else [rows[i] for i in np.flatnonzero(given).tolist()]
            for row, value in zip(chosen, infos[key][given].tolist(), strict=True):
                row[key] = value


def _entries(infos: Mapping[str, Any], keys: Sequence[str], i: int) -> dict[str, Any]:
    """Return what environment i has of the keys; a mapping of arrays becomes one of their entries."""
    return {key: _entry(infos[key], i) for key in keys if key in infos and infos[f"_{key}"][i]}


def _entry(values: Any, i: int) -> Any:
    if isinstance(values, Mapping):
        return _entries(values, [key for key in values if f"_{key}" in values], i)
    value = values[i]
    return value.item() if isinstance(value, np.generic) else value
