"""Big-job episodes for training: their starting states, sizes and rewards, in a vector environment of one scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium.vector import AutoresetMode, VectorWrapper
from numpy.typing import NDArray

from queue_env.reward import tail_cost
from queue_env.vector_env import QueueVectorEnv
from train.starts import PlainState

__all__ = ["BigJobs"]

FloatArray: TypeAlias = NDArray[np.float64]

_DRAWS = 100  # of a state for a size, before the episode starts from an empty system


class BigJobs(VectorWrapper):
    """Big-job episodes that start amid the jobs of a plain run; resets are made in the step that ends an episode.

    An episode starts with a state drawn from `states`, none of whose jobs is as large as the big job that arrives just
    then. Its size x is log-uniform over `sizes`. Costs are divided by w((x + E[S])/c), with w the tail cost, so that
    the return of an episode is of order one whatever x is; and multiplied by P[S <= x] for every later arrival, which
    is `infos["weight"]`.

    Args:
        env: of the mode DISABLED, with big-job episodes and the reward "tail".

    Attributes:
        states: to start from; none for an empty system.
        sizes: range of x in mean sizes.
    """

    env: QueueVectorEnv

    def __init__(self, env: QueueVectorEnv) -> None:
        super().__init__(env)
        self.metadata = env.metadata | {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.states: Sequence[PlainState] = ()
        self.sizes = (1.0, 10.0)
        self._cost = tail_cost(env.config.scenario, env.config.tail_range)
        self._rng = np.random.default_rng(0)
        self._factor, self._first, self._returns = np.ones((3, env.num_envs))
        self._lengths = np.zeros(env.num_envs, np.int64)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in all systems.

        Args:
            seed: of everything random.
            options: none.
        """
        observations, infos = self.env.reset(seed=seed)
        if seed is not None:
            self._rng = np.random.default_rng([seed, 1])
        for b in range(self.num_envs):
            observations = self._begin(b, infos)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, FloatArray, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Make a step, and begin another episode where one is over."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        rewards *= self._factor
        infos["weight"] = infos["weight"] / self._first
        self._returns += rewards
        self._lengths += 1
        ended = terminated | truncated
        if ended.any():
            infos |= self._finals(observations, infos, ended)
            for b in np.flatnonzero(ended).tolist():
                observations = self._begin(b, infos)
        return observations, rewards, terminated, truncated, infos

    def _finals(self, observations: Any, infos: dict[str, Any], ended: NDArray[np.bool_]) -> dict[str, Any]:
        """Return what is known of the last steps of episodes, and what Stable-Baselines3 logs of them."""
        last = np.full(self.num_envs, None, dtype=object)
        for b in np.flatnonzero(ended):
            last[b] = observations[b].copy()
        episode = {"r": self._returns.copy(), "_r": ended, "l": self._lengths.copy(), "_l": ended}
        final = {"dt": infos["dt"].copy(), "weight": infos["weight"].copy(), "episode": episode}
        final |= {f"_{name}": ended for name in ("dt", "weight", "episode")}
        return {"final_obs": last, "_final_obs": ended, "final_info": final, "_final_info": ended}

    def _begin(self, b: int, infos: dict[str, Any]) -> Any:
        """Begin an episode in system b; writes into the infos and returns the observations of all."""
        model = self.env.config.scenario
        low, high = np.log(self.sizes)
        size = float(np.exp(low + (high - low) * self._rng.random())) * model.sizes.mean
        mask = np.zeros(self.num_envs, np.bool_)
        mask[b] = True
        options = {"reset_mask": mask, "jobs": self._jobs(size), "job": {"size": size}}
        observations, fresh = self.env.reset(options=options)
        self._first[b] = fresh["weight"][b]
        self._factor[b] = 1.0 / (self._first[b] * self._cost.of((size + model.sizes.mean) / model.c))
        self._returns[b] = self._lengths[b] = 0
        infos["dt"][b], infos["weight"][b] = 0.0, 1.0
        return observations

    def _jobs(self, size: float) -> list[dict[str, Any]]:
        for _ in range(_DRAWS if self.states else 0):
            state = self.states[int(self._rng.integers(len(self.states)))]
            if state.largest < size:
                return state.jobs
        return []

    # ---- what is kept ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that decides what comes; `restore` goes on from there, to the bit."""
        names = ("env", "states", "sizes", "_rng", "_factor", "_first", "_returns", "_lengths")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        for name, value in state.items():
            setattr(self, name, value)
