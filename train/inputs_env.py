"""Big-job episodes in which an agent sees what the kernel's networks see, and sets the logit of the anchor's rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from baselines.network import network_inputs, rows_of
from queue_env.network import NAMES, Network
from queue_env.vector_env import QueueVectorEnv

__all__ = ["INPUTS", "NetworkInputs", "make_inputs_env", "network_of_layers"]

Layers: TypeAlias = Sequence[tuple[NDArray[Any], NDArray[Any]]]

INPUTS = NAMES[:8]  # the others tell scenarios apart
LIMIT = 12.0  # of the logit: 1/(1 + e^-12) is 6e-6 short of one
SCALE = 0.3  # of the features, which go up to about ten, so that tanh has something to tell apart


class NetworkInputs(VectorWrapper):
    """Observations are the inputs of the kernel's networks, times `SCALE`; actions the logit of the anchor's rate.

    Where no more jobs than servers are present no rate depends on the action, and all inputs are 0. A network of tanh
    that maps these observations to the logit is one of the kernel: `network_of_layers`.

    Args:
        env: a `QueueVectorEnv` with the action "anchor" and the compact view.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        queue = env.unwrapped
        assert isinstance(queue, QueueVectorEnv)
        self._config, self._layout = queue.config, queue.layout
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (len(INPUTS),), np.float32)
        self.single_action_space = spaces.Box(-LIMIT, LIMIT, (1,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode in all systems."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._inputs(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Serve the anchors at the rates whose logits the actions are."""
        rates = 1.0 / (1.0 + np.exp(-np.clip(np.asarray(actions, np.float64), -LIMIT, LIMIT)))
        observations, rewards, terminated, truncated, infos = self.env.step(rates)
        if "final_obs" in infos:
            for b in np.flatnonzero(infos["_final_obs"]).tolist():
                infos["final_obs"][b] = self._inputs(infos["final_obs"][b][None])[0]
        return self._inputs(observations), rewards, terminated, truncated, infos

    def _inputs(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        shown = self._layout.read(observations)
        servers = self._config.servers
        crowded = shown.number > servers
        found = np.zeros((len(observations), len(INPUTS)), np.float32)
        if crowded.any():
            columns = network_inputs(rows_of(shown, crowded), servers, self._config.spare, self._config.unit)
            found[crowded] = SCALE * np.column_stack([columns[name] for name in INPUTS])
        return found


def make_inputs_env(
    scenario: Any, systems: int, *, big_sizes: Sequence[float], most_steps: int | None, mode: str = "NextStep"
) -> NetworkInputs:
    """Make big-job episodes with the reward "tail" on a scenario.

    Args:
        scenario: its name, or a mapping.
        systems: side by side.
        big_sizes: range of the big job's size, in mean sizes.
        most_steps: of an episode, after which it is cut; None for no such end.
        mode: when ended episodes begin anew, a value of Gymnasium's ``AutoresetMode``.
    """
    return NetworkInputs(
        QueueVectorEnv(
            systems,
            autoreset_mode=mode,
            max_episode_steps=most_steps,
            scenario=scenario,
            action="anchor",
            observation="compact",
            episode="big-job",
            big_sizes=tuple(big_sizes),
            reward="tail",
        )
    )


def network_of_layers(layers: Layers) -> Network:
    """Return the network of the kernel whose layers, weights and biases, map the observations to the logit."""
    weights, biases = zip(*layers, strict=True)
    scaled = [np.asarray(part, np.float64) for part in weights]
    return Network(INPUTS, (SCALE * scaled[0], *scaled[1:]), tuple(np.asarray(part, np.float64) for part in biases))
