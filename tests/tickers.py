"""A toy environment with steps of unequal length, whose observations say which step is next.

The observation is (which environment, which episode, how many steps so far), each below 100, and everything that
happens is a function of it.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import ArrayLike, NDArray


def step_time(shown: ArrayLike) -> NDArray[np.float64]:
    """The time that the step after an observation takes, shape (...) for observations (..., 3)."""
    i, episode, t = np.moveaxis(np.asarray(shown, np.float64), -1, 0)
    return 0.1 + 0.37 * ((7 * i + 5 * episode + 3 * t) % 11)


def reward(shown: ArrayLike) -> NDArray[np.float64]:
    """The reward of the step after an observation."""
    i, episode, t = np.moveaxis(np.asarray(shown, np.float64), -1, 0)
    return np.cos(i + 2 * episode + 3 * t)


def steps(i: int, episode: int) -> int:
    """How many steps an episode has."""
    return 3 + (2 * i + episode) % 4


def is_cut(i: int, episode: int) -> bool:
    """Whether an episode ends by being cut, and does not end by itself."""
    return (i + episode) % 2 == 0


def is_cut_too(i: int, episode: int) -> bool:
    """Whether an episode that ends by itself would have been cut at that step."""
    return (i + episode) % 4 == 1


class Ticker(gym.Env[Any, Any]):
    """The environment.

    Args:
        index: which environment it is.
        actions: "box" or "discrete"; they have no effect.
        form: "vector" for a Box(3), "dict" for a Dict with the keys who (2) and when (1).
        timed: whether there is a dt in the infos of steps.
        reset_dt: whether there is a dt, of 0, in the infos of resets.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}  # noqa: RUF012

    def __init__(
        self,
        index: int = 0,
        actions: str = "box",
        form: str = "vector",
        *,
        timed: bool = True,
        reset_dt: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self.index, self.form, self.timed, self.reset_dt, self.render_mode = index, form, timed, reset_dt, render_mode
        self.action_space = spaces.Discrete(3) if actions == "discrete" else spaces.Box(-1.0, 1.0, (2,), np.float32)
        whole = spaces.Box(0.0, 100.0, (3,), np.float32)
        parts = {"who": spaces.Box(0.0, 100.0, (2,), np.float32), "when": spaces.Box(0.0, 100.0, (1,), np.float32)}
        self.observation_space = whole if form == "vector" else spaces.Dict(parts)
        self.episode, self.t = -1, 0
        self.seeds: list[Any] = []
        self.options: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.options.append(options)
        self.episode, self.t = 0 if seed is not None else self.episode + 1, 0
        return self._shown(), {"dt": 0.0, "weight": 1.0} if self.reset_dt else {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        now = (self.index, self.episode, self.t)
        self.t += 1
        over, cut = self.t == steps(self.index, self.episode), is_cut(self.index, self.episode)
        info: dict[str, Any] = {"dt": float(step_time(now)), "weight": 1.0 / self.t} if self.timed else {}
        if over:
            info |= {"reason": "cut" if cut else "end", "summary": {"steps": self.t, "cost": {"mean": 0.5 * self.t}}}
        truncated = over and (cut or is_cut_too(self.index, self.episode))
        return self._shown(), float(reward(now)), over and not cut, truncated, info

    def render(self) -> NDArray[np.uint8]:
        return np.full((4, 5, 3), 10 * self.index + self.t, np.uint8)

    def _shown(self) -> Any:
        shown = np.array([self.index, self.episode, self.t], np.float32)
        return shown if self.form == "vector" else {"who": shown[:2], "when": shown[2:]}


def tickers(
    num_envs: int = 3, autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP, threads: int = 1, **arguments: Any
) -> SyncVectorEnv:
    """A vector environment of tickers, by Gymnasium's own code, with the arguments of a native one."""
    makers = [lambda i=i: Ticker(i, **arguments) for i in range(num_envs)]
    return SyncVectorEnv(makers, autoreset_mode=autoreset_mode)


def as_vector(observations: Any) -> NDArray[Any]:
    """Observations of either form as one array, shape (..., 3)."""
    if isinstance(observations, dict):
        return np.concatenate([np.asarray(observations["who"]), np.asarray(observations["when"])], axis=-1)
    return np.asarray(observations)
