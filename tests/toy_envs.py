"""A small environment, and the same as a vector environment that makes all of its returns by itself."""

from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

LIMIT = 10  # steps to truncation
EDGE = 2.0  # |position| beyond it terminates
OBSERVATIONS = spaces.Box(-20, 20, (2,), np.float32)

Infos: TypeAlias = dict[str, Any]
Array: TypeAlias = NDArray[Any]
VectorStep: TypeAlias = tuple[Array, Array, Array, Array, Infos]


class Toy(gym.Env[Array, Any]):
    """A random walk that actions push. Infos have numbers, NaN, an array, words, and keys of some steps only."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.observation_space = OBSERVATIONS
        self.action_space = spaces.Discrete(3)
        self.position = 0.0
        self.time = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, Infos]:
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1, 1) + (options or {}).get("shift", 0.0)
        self.time = 0
        return self.observe(), {"time": 0, "start": self.position}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, Infos]:
        noise = 0.3 * self.np_random.normal()
        self.position += 0.5 * (int(action) - 1) + noise
        self.time += 1
        terminated = abs(self.position) > EDGE
        truncated = not terminated and self.time >= LIMIT
        parts = {"noise": noise, "pair": np.array([self.position, noise])}
        # Gymnasium's checker compares the infos of a first step, and takes NaN to be unequal to NaN.
        info: Infos = {"time": self.time, "gap": np.nan if self.time > 1 else 0.0, "parts": parts}
        if terminated or truncated:
            info["summary"] = {"length": self.time, "reason": "edge" if terminated else "limit"}
        return self.observe(), -abs(self.position), terminated, truncated, info

    def observe(self) -> Array:
        return np.array([self.position, self.time / LIMIT], dtype=np.float32)


class ToyVector(VectorEnv[Array, Array, Array]):
    """`Toy` many times, in all modes."""

    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        self.num_envs = num_envs
        self.mode = mode
        self.metadata = {"autoreset_mode": mode}
        self.single_observation_space = OBSERVATIONS
        self.single_action_space = spaces.Discrete(3)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.generators = [np_random()[0] for _ in range(num_envs)]
        self.position = np.zeros(num_envs)
        self.time = np.zeros(num_envs, dtype=np.int64)
        self.ended = np.zeros(num_envs, dtype=np.bool_)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Array, Infos]:
        options = options or {}
        mask = self.read_mask(options)
        for i, one in enumerate(self.read_seeds(seed)):
            if mask[i] and one is not None:
                self.generators[i] = np_random(one)[0]
        infos: Infos = {}
        self.begin(mask, infos, options.get("shift", 0.0))
        self.ended = self.ended & ~mask
        return self.observe(), infos

    def step(self, actions: Array) -> VectorStep:
        assert self.mode is not AutoresetMode.DISABLED or not self.ended.any()
        resetting = self.ended if self.mode is AutoresetMode.NEXT_STEP else np.zeros_like(self.ended)
        noise = self.move(actions, ~resetting)
        terminated = ~resetting & (np.abs(self.position) > EDGE)
        truncated = ~resetting & ~terminated & (self.time >= LIMIT)
        ended = terminated | truncated
        rewards = np.where(resetting, 0.0, -np.abs(self.position))
        infos: Infos = {}
        if self.mode is AutoresetMode.SAME_STEP:
            self.report(infos, ~ended, ended, noise)
            self.finish(infos, ended, noise)
            self.begin(ended, infos)
        else:
            self.report(infos, ~resetting, ended, noise)
            self.begin(resetting, infos)
        self.ended = ended
        return self.observe(), rewards, terminated, truncated, infos

    def read_mask(self, options: dict[str, Any]) -> Array:
        mask = options.get("reset_mask")
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError("reset_mask must be a bool array")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError("reset_mask must have an entry for each sub-env, and some True")
        return mask

    def read_seeds(self, seed: Any) -> list[int | None]:
        if seed is None or isinstance(seed, int):
            return [None if seed is None else seed + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError("there must be a seed for each sub-env")
        return list(seed)

    def begin(self, mask: Array, infos: Infos, shift: float = 0.0) -> None:
        """New episodes."""
        for i in np.flatnonzero(mask):
            self.position[i] = self.generators[i].uniform(-1, 1) + shift
        self.time[mask] = 0
        put(infos, "time", mask, self.time)
        put(infos, "start", mask, self.position)

    def move(self, actions: Array, mask: Array) -> Array:
        noise = np.array([0.3 * self.generators[i].normal() if mask[i] else 0.0 for i in range(self.num_envs)])
        self.position = np.where(mask, self.position + (0.5 * (actions - 1) + noise), self.position)
        self.time = self.time + mask
        return noise

    def report(self, infos: Infos, mask: Array, ended: Array, noise: Array) -> None:
        """The infos of a step."""
        put(infos, "time", mask, self.time)
        put(infos, "gap", mask, np.where(self.time > 1, np.nan, 0.0))
        parts: Infos = {}
        put(parts, "noise", mask, noise)
        put(parts, "pair", mask, np.stack([self.position, noise], axis=1))
        put_dict(infos, "parts", mask, parts)
        summary: Infos = {}
        reasons = np.where(np.abs(self.position) > EDGE, "edge", "limit").astype(object)
        put(summary, "length", mask & ended, self.time)
        put(summary, "reason", mask & ended, reasons)
        put_dict(infos, "summary", mask & ended, summary)

    def finish(self, infos: Infos, ended: Array, noise: Array) -> None:
        """The infos that SAME_STEP adds."""
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(ended):
            final[i] = self.observe()[i].copy()
        put(infos, "final_obs", ended, final)
        final_info: Infos = {}
        self.report(final_info, ended, ended, noise)
        put_dict(infos, "final_info", ended, final_info)

    def observe(self) -> Array:
        return np.stack([self.position, self.time / LIMIT], axis=1).astype(np.float32)


def put(infos: Infos, key: str, mask: Array, values: Array) -> None:
    """Values where the mask is True, and the mask; elsewhere what was there before, at first zero or None."""
    if mask.any():
        blank = np.full_like(values, None) if values.dtype == object else np.zeros_like(values)
        infos.setdefault(key, blank)[mask] = values[mask]
        infos[f"_{key}"] = infos.get(f"_{key}", False) | mask


def put_dict(infos: Infos, key: str, mask: Array, values: Infos) -> None:
    if mask.any():
        infos[key], infos[f"_{key}"] = values, mask.copy()
