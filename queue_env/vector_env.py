"""B queues as one Gymnasium vector environment: `QueueVectorEnv`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from queue_env.batch import BatchOfSystems
from queue_env.config import MOST_STEPS, RENDER_MODES, EnvConfig, make_config
from queue_env.distributions.checks import refuse, whole
from queue_env.env import QueueEnv
from queue_env.infos import infos_of_all
from queue_env.kernel import env_layout as layout
from queue_env.pictures import Drawings
from queue_env.snapshot import Snapshot
from queue_env.starts import new_seed, read_options

__all__ = ["QueueVectorEnv"]

_MODES = {
    AutoresetMode.NEXT_STEP: layout.NEXT_STEP,
    AutoresetMode.SAME_STEP: layout.SAME_STEP,
    AutoresetMode.DISABLED: layout.DISABLED,
}


class QueueVectorEnv(VectorEnv[Any, Any, Any]):
    """B systems in one kernel: each is, to the bit, the `QueueEnv` with the same arguments and its seed.

    Args:
        num_envs: number of systems B.
        autoreset_mode: what happens when an episode is over: an `AutoresetMode` or its value such as "NextStep".
        threads: that share the systems; results do not depend on it.
        max_episode_steps: steps after which an episode is truncated, or None.
        **arguments: those of `QueueEnv`.

    Raises:
        ValueError: an argument is not allowed.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": list(RENDER_MODES),
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        max_episode_steps: int | None = None,
        **arguments: Any,
    ) -> None:
        self.num_envs = whole("environment", "num_envs", num_envs, 1)
        try:
            mode = AutoresetMode(autoreset_mode)
        except ValueError:
            names = ", ".join(f'"{item.value}"' for item in AutoresetMode)
            refuse("environment", "autoreset_mode", f"an AutoresetMode or its value, one of {names}", autoreset_mode)
        if max_episode_steps is not None:
            whole("environment", "max_episode_steps", max_episode_steps, 1, MOST_STEPS)
        self.config = _config(arguments)
        self.layout, self.actions = self.config.layout, self.config.actions
        self.autoreset_mode = mode
        self.metadata = type(self).metadata | {"autoreset_mode": mode}  # type: ignore[misc]
        self.render_mode = self.config.render_mode
        self.single_observation_space, self.single_action_space = self.layout.space(), self.actions.space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        threads = min(whole("environment", "threads", threads, 1), self.num_envs)
        self.batch = BatchOfSystems(self.config, self.num_envs, _MODES[mode], max_episode_steps, threads)
        self._generators: list[np.random.Generator | None] = [None] * self.num_envs
        self._never_reset = np.ones(self.num_envs, dtype=np.bool_)
        self._all_begun = False
        self._drawings = Drawings(self.config, self.batch, self.metadata["render_fps"])

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in all systems, or in those of `options["reset_mask"]`.

        Args:
            seed: s for s, s+1, ...; or one for each system; None goes on with the jobs of the last seeds.
            options: as for `QueueEnv`, for every system that is reset; and, in every autoreset mode, `reset_mask`,
                bool `(num_envs,)`.

        Raises:
            ValueError: a seed or an option is not allowed, or the environment is closed.
            TypeError: the reset mask is no array of bool.
        """
        self._check_open("reset")
        mask, others = _split_mask(options, self.num_envs)
        seeds = _seeds(seed, self.num_envs)
        start = read_options(self.config, self.batch.memory, others)
        chosen = np.flatnonzero(mask).tolist()
        fresh = {b: self._new_seed(b, seeds[b]) for b in chosen if seeds[b] is not None or not self.batch.seeded(b)}
        self.batch.reset(chosen, fresh, start, new_jobs={b for b in chosen if seeds[b] is not None})
        outcomes = self.batch.memory.outcomes
        self._never_reset[mask] = False
        self._all_begun = not self._never_reset.any()
        for b in chosen:
            self._drawings.begin(b)
        rates, nobody = self.batch.memory.rates, np.zeros_like(mask)
        infos = infos_of_all(self.config, outcomes, rates, nobody, mask, begun=mask)
        return self._observation(), infos

    def step(
        self, actions: ArrayLike
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Hold an action in each system until its next decision.

        Raises:
            ValueError: the actions have a wrong shape or hold NaN, an episode is over that is not reset by itself, some
                system was never reset, or the environment is closed.
        """
        self._check_open("step")
        memory = self.batch.memory
        before = memory.outcomes[:, layout.REASON].astype(np.bool_)
        if not self._all_begun:
            refuse("step", "systems that were never reset", "none", np.flatnonzero(self._never_reset).tolist())
        if self.autoreset_mode == AutoresetMode.DISABLED and before.any():
            refuse("step", "episodes", "running: reset those that are over", np.flatnonzero(before).tolist())
        self.actions.put(actions, memory.actions)
        self.batch.step()
        columns = self.batch.memory.outcomes.T
        rewards = columns[layout.REWARD].copy()
        terminated, truncated = columns[layout.TERMINATED : layout.TRUNCATED + 1].astype(np.bool_)
        infos = self._infos(before, terminated | truncated)
        if self.render_mode is not None:
            self._note(before)
        return self._observation(), rewards, terminated, truncated, infos

    def _infos(self, before: NDArray[np.bool_], ended: NDArray[np.bool_]) -> dict[str, Any]:
        memory = self.batch.memory
        if self.autoreset_mode != AutoresetMode.SAME_STEP or not np.count_nonzero(ended):
            return infos_of_all(self.config, memory.outcomes, memory.rates, ended, begun=before)
        finals = infos_of_all(self.config, memory.last_outcomes, memory.rates, ended, ended)
        infos = infos_of_all(self.config, memory.outcomes, memory.rates, np.zeros_like(ended), begun=ended)
        observations = np.full(self.num_envs, None, dtype=object)
        for b in np.flatnonzero(ended):
            observations[b] = self.layout.view(memory.last_observations[b].copy())
        infos |= {"final_obs": observations, "_final_obs": ended.copy()}
        return infos | {"final_info": finals, "_final_info": ended.copy()}

    def snapshot(self, index: int) -> Snapshot:
        """Return the whole state of a system, for `reset(options={"snapshot": ...})` here or of a `QueueEnv`.

        Raises:
            ValueError: there is no such system, or it was never reset.
        """
        return self.batch.snapshot(self._begun("snapshot", index))

    def records(self, index: int) -> NDArray[np.void]:
        """Return a record of each job of a system; after a same-step reset, of the new episode.

        Raises:
            ValueError: there are no records or no such system, or it was never reset.
        """
        if not self.config.records:
            refuse("records", "records", "True, given to the environment", False)
        return self.batch.records(self._begun("records", index))

    def render(self) -> tuple[Any, ...] | None:
        """Draw every system as it is now; a window shows the first."""
        if self.render_mode is None:
            gym.logger.warn("render() does nothing: make the environment with a render_mode")
            return None
        count = 1 if self.render_mode == "human" else self.num_envs
        return tuple(self._drawings.draw(self.render_mode, b) for b in range(count))

    def close_extras(self, **kwargs: Any) -> None:
        """Close the window and end the threads."""
        # Gymnasium closes what its constructor has refused, too.
        if hasattr(self, "_drawings"):
            self._drawings.close()
        if hasattr(self, "batch"):
            self.batch.close()

    def _check_open(self, owner: str) -> None:
        if self.closed:
            refuse(owner, "environment", "open", "one that has been closed")

    def _begun(self, owner: str, index: int) -> int:
        """Return the index of a system that has been reset."""
        index = whole(owner, "index", index, 0, self.num_envs - 1)
        if self._never_reset[index]:
            refuse(owner, f"environment {index}", "reset first", "no episode")
        return index

    def _new_seed(self, b: int, seed: int | None) -> np.random.SeedSequence:
        if seed is not None or self._generators[b] is None:
            self._generators[b], _ = seeding.np_random(seed)
        generator = self._generators[b]
        assert generator is not None
        return new_seed(generator)

    def _observation(self) -> Any:
        return self.layout.view(self.batch.memory.observations.copy())

    def _note(self, before: NDArray[np.bool_]) -> None:
        """Keep what each episode has been like, for its picture."""
        memory = self.batch.memory
        for b in range(self.num_envs):
            if before[b] or memory.last_outcomes[b, layout.REASON] > 0:
                self._drawings.begin(b)
            else:
                self._drawings.note(b, memory.outcomes[b])
        if self.render_mode == "human":
            self._drawings.draw("human", 0)


def _config(arguments: dict[str, Any]) -> EnvConfig:
    defaults = dict(QueueEnv.__init__.__kwdefaults__ or {})
    for name in arguments:
        if name != "scenario" and name not in defaults:
            raise TypeError(
                f"QueueVectorEnv: unknown argument {name!r}; those of QueueEnv: scenario, {', '.join(defaults)}"
            )
    scenario = arguments.get("scenario", "high-load-2")
    return make_config(scenario, **defaults | {k: v for k, v in arguments.items() if k != "scenario"})


def _seeds(seed: Any, count: int) -> list[int | None]:
    if seed is None:
        return [None] * count
    if isinstance(seed, int | np.integer):
        return [int(seed) + i for i in range(count)]
    if isinstance(seed, str) or not isinstance(seed, Sequence | np.ndarray):
        refuse("reset", "seed", f"an integer, a list of {count} of them, or None", seed)
    if len(seed) != count:
        refuse("reset", "number of seeds", str(count), len(seed))
    return list(seed)


def _split_mask(options: Mapping[str, Any] | None, count: int) -> tuple[NDArray[np.bool_], Mapping[str, Any] | None]:
    """Return who is to be reset, and the options besides."""
    if not isinstance(options, Mapping) or "reset_mask" not in options:
        return np.ones(count, dtype=np.bool_), options
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"reset: options['reset_mask'] must be a NumPy array of bool, got {mask!r}")
    if mask.shape != (count,) or not mask.any():
        refuse("reset", "options['reset_mask']", f"of shape ({count},) with at least one True", mask)
    return mask.copy(), {name: value for name, value in options.items() if name != "reset_mask"}
