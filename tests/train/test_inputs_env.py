"""The environment in which an agent sees what the kernel's networks see, and networks made of its layers."""

from __future__ import annotations

import numpy as np
import pytest

from baselines import make_agent
from queue_env.network import write_network
from queue_env.vector_env import QueueVectorEnv
from train.inputs_env import INPUTS, LIMIT, NetworkInputs, make_inputs_env, network_of_layers

SHAPES = ((4, len(INPUTS)), (4, 4), (1, 4))


def layers(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=shape), rng.normal(size=shape[0])) for shape in SHAPES]


def logits(parts: list[tuple[np.ndarray, np.ndarray]], inputs: np.ndarray) -> np.ndarray:
    """What a network of tanh makes of observations, shape (B, 1)."""
    for weights, biases in parts[:-1]:
        inputs = np.tanh(inputs @ weights.T + biases)
    return np.asarray(inputs @ parts[-1][0].T + parts[-1][1])


def make(mode: str = "NextStep", systems: int = 16) -> NetworkInputs:
    return make_inputs_env("high-load-2", systems, big_sizes=(1, 20), most_steps=100, mode=mode)


def test_a_network_acts_in_the_kernel_as_on_observations(tmp_path: object) -> None:
    """The rates that the network's agent gives in the environment are those that the layers give on these inputs."""
    env, parts = make(), layers(1)
    file = f"{tmp_path}/policy.json"
    write_network(file, network_of_layers(parts), {})
    queue = env.env
    assert isinstance(queue, QueueVectorEnv)
    agent = make_agent(f"learned:{file}", queue)
    seen, _ = env.reset(seed=3)
    crowded = 0
    raw, _ = queue.reset(seed=3)
    for _ in range(200):
        rates, _ = agent.predict(raw)
        many = seen.any(axis=1)
        expected = np.where(many[:, None], 1 / (1 + np.exp(-logits(parts, seen))), 1.0)
        np.testing.assert_allclose(rates, expected, atol=1e-4)
        crowded += int(many.sum())
        raw = queue.step(rates)[0]
        seen = env._inputs(raw)
    assert crowded > 500


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_episodes_are_those_of_the_queue(mode: str) -> None:
    env = make(mode)
    twin = QueueVectorEnv(
        16,
        autoreset_mode=mode,
        max_episode_steps=100,
        scenario="high-load-2",
        action="anchor",
        observation="compact",
        episode="big-job",
        big_sizes=(1, 20),
        reward="tail",
    )
    env.reset(seed=5)
    twin.reset(seed=5)
    rng, ended = np.random.default_rng(0), 0
    for _ in range(150):
        actions = rng.normal(0, 20, (16, 1))
        seen, rewards, terminated, truncated, infos = env.step(actions)
        _, others, *ends, _ = twin.step(1 / (1 + np.exp(-np.clip(actions, -LIMIT, LIMIT))))
        assert np.array_equal(rewards, others)
        assert np.array_equal([terminated, truncated], ends)
        assert seen.dtype == np.float32
        assert env.observation_space.contains(seen)
        ended += int((terminated | truncated).sum())
        for b in np.flatnonzero(infos.get("_final_obs", [])):
            assert env.single_observation_space.contains(infos["final_obs"][b])
    assert ended > 20
