"""RLlib trains PPO and SAC on the vector environment itself, with its new API stack.

It is no test of the test suite, since RLlib wants a Gymnasium of its own (1.2.2 for Ray 2.60). In a virtual
environment of its own, from the root of a checkout:

    python -m venv rllib-venv
    rllib-venv/bin/pip install torch==2.13.0
    rllib-venv/bin/pip install "ray[rllib]" --editable .
    OMP_NUM_THREADS=1 RAY_USAGE_STATS_ENABLED=0 rllib-venv/bin/python -m tests.tooling.rllib_smoke

It prints a table of what was seen, and ends with an error if something is wrong.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import gymnasium as gym
import numpy as np
import ray
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.env_to_module import FlattenObservations
from ray.tune import register_env

from tests.tooling.watch import ID, Watch, assert_learned, parameters_of

NUM_ENVS, STEPS, ROUNDS = 8, 512, 2
NAME = "watched-queue"
ANCHOR: dict[str, Any] = {"action": "anchor", "observation": "compact", "jobs": 10}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "PPO, anchor, compact": ("PPO", ANCHOR),
    "PPO, allocation, flat": ("PPO", {"action": "allocation", "jobs": 10}),
    "PPO, rule, compact": (
        "PPO",
        {"action": "rule", "rules": ["srpt", "fcfs"], "observation": "compact", "jobs": 10},
    ),
    "PPO, anchor, dict": ("PPO", {"action": "anchor", "observation": "dict", "jobs": 10}),
    "SAC, anchor, compact": ("SAC", ANCHOR),
}
WRONG = "PPO, SAME_STEP"

watches: list[Watch] = []
lengths: list[int] = []
returns: list[float] = []


class Noting(RLlibCallback):
    """Notes the episodes as they are made.

    They are not read off the results, for these count a step too many of episodes that go on from one iteration
    into the next: where runner and learner share a process, the learner lengthens the first part of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rewards: dict[int, list[float]] = {}

    def on_episode_step(self, *, episode: Any, env_index: int, **_: Any) -> None:
        """Note a transition, and the episode if that was its last."""
        self.rewards.setdefault(env_index, []).append(episode.get_rewards(-1))
        if episode.is_done:
            rewards = self.rewards.pop(env_index)
            lengths.append(len(rewards))
            returns.append(sum(rewards))


def make(context: Any) -> Any:
    """Make the watched vector environment: RLlib puts the number of environments among the arguments."""
    arguments = dict(context)
    envs = gym.make_vec(ID, num_envs=arguments.pop("num_envs", 1), **arguments)
    watches.append(Watch(envs))
    return envs


def configuration(algorithm: str, arguments: dict[str, Any]) -> AlgorithmConfig:
    """The smallest that learns in this process."""
    config: Any = (PPOConfig() if algorithm == "PPO" else SACConfig()).environment(NAME, env_config=arguments)
    connect = (lambda env, spaces=None, device=None: FlattenObservations()) if "dict" in arguments.values() else None
    config.env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=NUM_ENVS,
        gym_env_vectorize_mode="vector_entry_point",
        env_to_module_connector=connect,
    )
    config.learners(num_learners=0).callbacks(Noting).debugging(seed=0, log_level="ERROR")
    if algorithm == "PPO":
        config.training(train_batch_size_per_learner=STEPS, minibatch_size=128, num_epochs=2)
    else:
        config.training(train_batch_size_per_learner=64, num_steps_sampled_before_learning_starts=64)
        config.env_runners(rollout_fragment_length=STEPS // NUM_ENVS)
    return config


def check(name: str, algorithm: str, arguments: dict[str, Any], *, wrong: bool = False) -> None:
    """Train on one form of the environment, check what came of it, and print a line."""
    watches.clear()
    lengths.clear()
    returns.clear()
    algo = configuration(algorithm, arguments).build_algo()
    watch = watches[-1]
    module = algo.get_module()
    before = parameters_of(module)
    for _ in range(ROUNDS):
        result = algo.train()
    seen_by_algorithm = float(result["env_runners"]["episode_return_mean"])
    assert_learned(before, parameters_of(algo.get_module()))
    native = str(algo.env_runner.env)
    algo.stop()

    assert "QueueVectorEnv" in native, native
    assert len(lengths) > 10, "too few episodes"
    assert np.isfinite(seen_by_algorithm)
    true = watch.lengths
    if wrong:
        assert np.mean(lengths) < np.mean(true), "SAME_STEP no longer loses a step"
    else:
        assert sorted(lengths) == sorted(true), (sorted(lengths), sorted(true))
        np.testing.assert_allclose(sorted(returns), sorted(watch.returns), rtol=1e-5)
        assert set(watch.served) == {10}
        assert 0 <= watch.lowest < watch.highest <= 1, (watch.lowest, watch.highest)
    difference = np.mean(lengths) - np.mean(true)
    print(
        f"{name:22} {watch.steps:6} {len(lengths):9} {np.mean(returns):12.4g} {difference:10.2f}  "
        f"{watch.lowest:.2f}..{watch.highest:.2f}",
        flush=True,
    )


def main() -> None:
    """Check all forms, and what a wrong autoreset mode does."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
    register_env(NAME, make)
    print(f"ray {version('ray')}, gymnasium {gym.__version__}, torch {torch.__version__}")
    print(f"{'case':22} {'steps':>6} {'episodes':>9} {'mean return':>12} {'too long':>10}  actions")
    try:
        for name, (algorithm, arguments) in CASES.items():
            check(name, algorithm, arguments)
        # Nothing complains of it, but a step of each episode is lost.
        check(WRONG, "PPO", ANCHOR | {"autoreset_mode": "SameStep"}, wrong=True)
        by_id = configuration("PPO", ANCHOR).environment(f"queue_env:{ID}", env_config=ANCHOR).build_algo()
        assert "QueueVectorEnv" in str(by_id.env_runner.env)
        assert by_id.train()["env_runners"]["num_env_steps_sampled"] > 0
        by_id.stop()
        print(f"by its id, queue_env:{ID}, too")
    finally:
        ray.shutdown()


if __name__ == "__main__":
    # RLlib copies what is in __main__, so that its environments would be watched in a list of their own.
    from tests.tooling.rllib_smoke import main as run

    run()
