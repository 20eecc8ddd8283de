"""What algorithms train in: big-job episodes of one scenario or several, as a ``VecEnv`` of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from queue_env.sb3 import SB3VecEnv
from queue_env.scenarios import Scenario
from queue_env.scoring.score import TAIL_RANGE
from queue_env.vector_env import QueueVectorEnv
from queue_env.wrappers import TimeDiscountVector
from train.big_jobs import BigJobs

__all__ = ["EXTRAS", "JoinedVecEnv", "Logits", "TrainingEnv", "make_training_env"]

EXTRAS = 2  # numbers after those of the compact view: servers, and the weight of costs


class TrainingEnv(NamedTuple):
    """The environment of an algorithm, and in it the big-job episodes of each scenario."""

    env: VecEnv
    parts: list[BigJobs]


def make_training_env(
    models: Sequence[Scenario],
    systems: int,
    *,
    limit: float | None,
    gain: float = 1.0,
    beta: float | None,
    most_steps: int | None,
    decision_interval: float | None = None,
    tail_range: tuple[float, float] = TAIL_RANGE,
) -> TrainingEnv:
    """Make the environment of a training.

    Args:
        models: scenarios, which share the systems equally.
        systems: side by side, at least one for each scenario.
        limit: the action is the logit of the anchor's rate, from -limit to limit, and the observation that of
            `Logits`; None: the action is a rule, and the observation is the compact view.
        gain: of the logit over the action.
        beta: discount rate [1/mean service time]; None for no discounts by time.
        most_steps: of an episode, after which it is cut; None for no such end.
        decision_interval: time between decisions [mean service times]; None for one at every event.
        tail_range: times over which the tail costs [mean service times].
    """
    shares = [systems // len(models) + (k < systems % len(models)) for k in range(len(models))]
    rows = max(model.servers for model in models) + 2
    parts, envs = [], []
    for model, share in zip(models, shares, strict=True):
        queue = QueueVectorEnv(
            share,
            autoreset_mode="Disabled",
            max_episode_steps=most_steps,
            scenario=model.to_dict(),
            action="rule" if limit is None else "anchor",
            observation="compact",
            episode="big-job",
            reward="tail",
            decision_interval=decision_interval,
            tail_range=tail_range,
        )
        parts.append(BigJobs(queue))
        env: VectorEnv[Any, Any, Any] = parts[-1]
        if limit is not None:
            env = Logits(env, limit, gain, rows)
        if beta is not None:
            env = TimeDiscountVector(env, beta / model.sizes.mean)
        envs.append(SB3VecEnv(env, infos=["episode"]))
    return TrainingEnv(envs[0] if len(envs) == 1 else JoinedVecEnv(envs), parts)


class Logits(VectorWrapper):
    """The anchor's rate by its logit y, a gain times the action: 1/(1 + e^-y); and the compact view, with more rows.

    After the rows come the number of servers, and the weight that costs have by now, of which only the critic should
    know.

    Args:
        env: with the action "anchor" and the compact view.
        limit: of the logit, on both sides.
        gain: of the logit over the action.
        rows: of jobs in the observation; those that are not there are 0.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], limit: float, gain: float, rows: int) -> None:
        super().__init__(env)
        self._gain = gain
        queue, seen = env.unwrapped, env.single_observation_space
        assert isinstance(queue, QueueVectorEnv)
        assert isinstance(seen, spaces.Box)
        layout, servers = queue.layout, queue.config.servers
        spare_columns = (rows - layout.rows) * len(layout.job_features)
        self._padding = np.zeros((env.num_envs, spare_columns), np.float32)
        self._servers = np.full((env.num_envs, 1), servers, np.float32)
        most = np.array([np.inf, 1.0], np.float32)
        low = np.concatenate([seen.low, np.zeros(spare_columns + EXTRAS, np.float32)])
        high = np.concatenate([seen.high, np.full(spare_columns, np.max(seen.high), np.float32), most])
        self.single_observation_space = spaces.Box(low, high, dtype=np.float32)
        self.single_action_space = spaces.Box(-limit / gain, limit / gain, (1,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in all systems."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._wide(observations, infos["weight"]), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Serve the anchors at the rates whose logits are the gain times the actions."""
        rates = 1.0 / (1.0 + np.exp(-self._gain * np.asarray(actions, np.float64)))
        observations, rewards, terminated, truncated, infos = self.env.step(rates)
        if "final_obs" in infos:
            for b in np.flatnonzero(infos["_final_obs"]):
                parts = [infos["final_obs"][b], self._padding[b], self._servers[b]]
                infos["final_obs"][b] = np.concatenate([*parts, infos["final_info"]["weight"][b : b + 1]])
        return self._wide(observations, infos["weight"]), rewards, terminated, truncated, infos

    def _wide(self, observations: NDArray[np.float32], weight: NDArray[np.float64]) -> NDArray[np.float32]:
        return np.hstack([observations, self._padding, self._servers, weight[:, None]]).astype(np.float32)


class JoinedVecEnv(VecEnv):
    """Vector environments of the same spaces side by side, as one.

    Args:
        parts: of equal observation and action spaces.
    """

    def __init__(self, parts: Sequence[VecEnv]) -> None:
        self.parts = list(parts)
        self._ends = np.cumsum([part.num_envs for part in parts])
        low, high = (np.array([getattr(part.observation_space, end) for part in parts]) for end in ("low", "high"))
        space = spaces.Box(low.min(axis=0), high.max(axis=0), dtype=np.float32)
        super().__init__(int(self._ends[-1]), space, parts[0].action_space)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the parts, each with numbers of its own."""
        seeds = super().seed(seed)
        for part, end in zip(self.parts, self._ends, strict=True):
            part.seed(seeds[end - part.num_envs])
        return seeds

    def reset(self) -> VecEnvObs:
        """Reset all."""
        observations = np.concatenate([np.asarray(part.reset()) for part in self.parts])
        self.reset_infos = [info for part in self.parts for info in part.reset_infos]
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions of the next step."""
        for part, own in zip(self.parts, np.split(actions, self._ends[:-1]), strict=True):
            part.step_async(own)

    def step_wait(self) -> VecEnvStepReturn:
        """Make the step."""
        observations, rewards, dones, infos = zip(*[part.step_wait() for part in self.parts], strict=True)
        merged = [info for rows in infos for info in rows]
        return np.concatenate(observations), np.concatenate(rewards), np.concatenate(dones), merged

    def close(self) -> None:
        """Close all."""
        for part in self.parts:
            part.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of each environment."""
        found = [value for part in self.parts for value in part.get_attr(attr_name)]
        return [found[i] for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of all environments."""
        for part in self.parts:
            part.set_attr(attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Call a method of each part."""
        found = [value for part in self.parts for value in part.env_method(method_name, *args, **kwargs)]
        return [found[i] for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Whether each environment has such a wrapper."""
        found = [value for part in self.parts for value in part.env_is_wrapped(wrapper_class)]
        return [found[i] for i in self._get_indices(indices)]
