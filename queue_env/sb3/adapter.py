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

# What is always handed on of the infos, where the environment gives it. There is no more of it, since the loop over
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
    infos: Sequence[str] = (),
    **arguments: Any,
) -> SB3VecEnv:
    """Make a native vector environment for Stable-Baselines3.

    Args:
        id: id of a registered environment with a native vector environment.
        num_envs: number of environments.
        threads: threads that share them.
        beta: discount rate in 1 over the workload's time unit, which adds ``infos[i]["discount"]``; None adds nothing.
        infos: keys of the environment's infos to hand on besides those that `SB3VecEnv` always hands on.
        **arguments: those of the environment. With ``allocation_in_info=True``, ``"allocation"`` is handed on too.

    Raises:
        ValueError: an argument is not allowed.
    """
    if "autoreset_mode" in arguments:
        allowed = "left out: Stable-Baselines3 needs AutoresetMode.SAME_STEP, which is given here"
        refuse("make_sb3_env", "autoreset_mode", allowed, arguments["autoreset_mode"])
    keys = _keys("make_sb3_env", infos)
    if arguments.get("allocation_in_info"):
        keys = (*keys, "allocation")
    venv = gym.make_vec(
        id,
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        threads=threads,
        **arguments,
    )
    return SB3VecEnv(venv if beta is None else TimeDiscountVector(venv, beta), infos=keys)


class SB3VecEnv(VecEnv):
    """A vector environment of Gymnasium as a ``VecEnv`` of Stable-Baselines3.

    ``infos[i]`` of a step has ``"TimeLimit.truncated"`` (whether the episode was cut, and did not end by itself), and
    ``"dt"``, ``"discount"`` and ``"weight"`` where the environment gives them. At the end of an episode they are those
    of its last step, and there are ``"terminal_observation"``, ``"summary"`` and ``"reason"`` besides; what the reset
    that follows says is in ``reset_infos[i]``. Of the other infos those in `infos` are handed on, at steps and resets,
    a mapping of arrays such as ``"cost"`` as a dict for each environment. Each of them takes time at every step.

    The environments are inside one vector environment and have no attributes or methods of their own: `get_attr`,
    `set_attr` and `env_method` are about the vector environment, which all of them share.

    Args:
        venv: a vector environment in the mode ``SAME_STEP``, which returns new arrays at every step.
        infos: further keys of its infos to hand on, such as ``["cost", "completions"]``, where it gives them.

    Raises:
        ValueError: venv is in another mode, or infos is no list of keys.
    """

    def __init__(self, venv: VectorEnv[Any, Any, Any], infos: Sequence[str] = ()) -> None:
        keys = _keys("SB3VecEnv", infos)
        self._at_reset, self._at_step, self._at_end = (
            tuple(dict.fromkeys((*always, *keys))) for always in (_AT_RESET, _AT_STEP, _AT_END)
        )
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
        _fill(self.reset_infos, infos, self._at_reset)
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
        _fill(rows, infos, self._at_step)
        for i in np.flatnonzero(dones).tolist():
            self.reset_infos[i] = {key: rows[i][key] for key in self._at_reset if key in rows[i]}
            last = _entries(infos.get("final_info", {}), self._at_end, i)
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


def _keys(owner: str, infos: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of infos to be handed on; a text by itself would be taken for a list of letters."""
    if isinstance(infos, str) or not all(isinstance(key, str) for key in infos):
        refuse(owner, "infos", 'a list of keys, such as ["cost"]', infos)
    return tuple(infos)


def _fill(rows: Sequence[dict[str, Any]], infos: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Put numbers in a dict of each environment, those of the keys that it has."""
    for key in keys:
        if key in infos:
            given: NDArray[np.bool_] = infos[f"_{key}"]
            chosen = rows if given.all() else [rows[i] for i in np.flatnonzero(given).tolist()]
            for row, value in zip(chosen, _values(infos[key], given), strict=True):
                row[key] = value


def _values(values: Any, given: NDArray[np.bool_]) -> Sequence[Any]:
    """Return the entries of the environments that have one; of a mapping of arrays, a dict of each."""
    if isinstance(values, Mapping):
        parts: list[dict[str, Any]] = [{} for _ in given]
        _fill(parts, values, _masked(values))
        return [parts[i] for i in np.flatnonzero(given).tolist()]
    chosen = values[given]
    return list(chosen) if chosen.ndim > 1 else chosen.tolist()


def _masked(values: Mapping[str, Any]) -> list[str]:
    """Return the keys that have a mask, and are no masks of others."""
    return [key for key in values if f"_{key}" in values]


def _entries(infos: Mapping[str, Any], keys: Sequence[str], i: int) -> dict[str, Any]:
    """Return what environment i has of the keys; a mapping of arrays becomes one of their entries."""
    return {key: _entry(infos[key], i) for key in keys if key in infos and infos[f"_{key}"][i]}


def _entry(values: Any, i: int) -> Any:
    if isinstance(values, Mapping):
        return _entries(values, _masked(values), i)
    value = values[i]
    return value.item() if isinstance(value, np.generic) else value
