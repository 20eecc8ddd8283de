"""Tianshou trains PPO on the environment, in its own vector environments of single ones.

It is no test of the test suite, since Tianshou is larger (half a gigabyte) than all else that the tests need.
In a virtual environment of its own, from the root of a checkout:

    python -m venv tianshou-venv
    tianshou-venv/bin/pip install torch==2.13.0
    tianshou-venv/bin/pip install --editable . tianshou
    tianshou-venv/bin/python -m tests.tooling.tianshou_smoke

It prints a table of what was seen, and ends with an error if something is wrong.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

from tests.tooling.watch import ID, Watch, assert_learned, assert_same_episodes, parameters_of

NUM_ENVS, EPISODES, ROUNDS = 4, 8, 2
CASES: dict[str, dict[str, Any]] = {
    "anchor, compact": {"action": "anchor", "observation": "compact", "jobs": 20},
    "allocation, flat": {"action": "allocation", "jobs": 20},
    "rule, compact": {"action": "rule", "rules": ["srpt", "fcfs", "ps"], "observation": "compact", "jobs": 20},
    "anchor, big-job": {"action": "anchor", "observation": "compact", "episode": "big-job", "big_sizes": (2, 4)},
}


class WithoutReason(gym.Wrapper):  # type: ignore[type-arg]
    """Leaves out ``info["reason"]``: the trainer takes a word that comes with last steps only for NaN in the others."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and hand on the infos that are numbers."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        info.pop("reason", None)
        return observation, reward, terminated, truncated, info


def make_algorithm(space: gym.spaces.Box, actions: gym.spaces.Space[Any]) -> PPO:
    """PPO with small networks, for rates in a box or for rules."""
    actor: Any
    critic: Any
    bodies = [Net(state_shape=space.shape, hidden_sizes=[32, 32]) for _ in range(2)]
    if isinstance(actions, gym.spaces.Discrete):
        actor = DiscreteActor(preprocess_net=bodies[0], action_shape=int(actions.n), softmax_output=False)
        critic = DiscreteCritic(preprocess_net=bodies[1])
        policy = ProbabilisticActorPolicy(
            actor=actor,
            dist_fn=lambda logits: torch.distributions.Categorical(logits=logits),
            action_space=actions,
            action_scaling=False,
            action_bound_method=None,
        )
    else:
        assert actions.shape is not None
        actor = ContinuousActorProbabilistic(preprocess_net=bodies[0], action_shape=actions.shape, unbounded=True)
        critic = ContinuousCritic(preprocess_net=bodies[1])
        policy = ProbabilisticActorPolicy(
            actor=actor,
            dist_fn=lambda pair: torch.distributions.Independent(torch.distributions.Normal(*pair), 1),
            action_space=actions,
        )
    return PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=1e-3))


def check(name: str, arguments: dict[str, Any]) -> None:
    """Train on one form of the environment, check what came of it, and print a line."""
    singles = [WithoutReason(gym.make(ID, **arguments)) for _ in range(NUM_ENVS)]
    watches = [Watch(one.unwrapped) for one in singles]
    envs = DummyVectorEnv([lambda one=one: one for one in singles])
    algorithm = make_algorithm(singles[0].observation_space, singles[0].action_space)
    before = parameters_of(algorithm.policy)
    noted: list[Any] = []

    class Noting(Collector):  # type: ignore[type-arg]
        def collect(self, *args: Any, **kwargs: Any) -> Any:
            statistics = super().collect(*args, **kwargs)
            noted.append(statistics)
            return statistics

    collector = Noting(algorithm, envs, VectorReplayBuffer(10_000, NUM_ENVS))
    algorithm.run_training(
        OnPolicyTrainerParams(
            training_collector=collector,
            max_epochs=ROUNDS,
            epoch_num_steps=1,  # one collection, since it is made up of whole episodes
            # Not by steps: an episode that goes on from one collection into the next is then noted as if it had begun
            # with the second, so that the mean return is too near to zero.
            collection_step_num_env_steps=None,
            collection_step_num_episodes=EPISODES,
            batch_size=64,
            update_step_num_repetitions=2,
            verbose=False,
            show_progress=False,
        )
    )
    assert_learned(before, parameters_of(algorithm.policy))

    watch = watches[0]
    for other in watches[1:]:
        watch.steps += other.steps
        watch.lengths += other.lengths
        watch.returns += other.returns
        watch.lowest, watch.highest = min(watch.lowest, other.lowest), max(watch.highest, other.highest)
    assert len(watch.lengths) == ROUNDS * EPISODES, f"{len(watch.lengths)} episodes were made"
    assert watch.steps == sum(watch.lengths), f"{watch.steps} steps were made"
    lengths = np.concatenate([statistics.lens for statistics in noted])
    returns = np.concatenate([statistics.returns for statistics in noted])
    assert_same_episodes(watch, lengths, returns)
    top = len(arguments["rules"]) - 1 if "rules" in arguments else 1
    assert 0 <= watch.lowest < watch.highest <= top, f"actions from {watch.lowest} to {watch.highest}"
    print(
        f"{name:18} {watch.steps:6} {len(lengths):9} {np.mean(returns):12.4g} {watch.lowest:.2f}..{watch.highest:.2f}"
    )


def main() -> None:
    """Check all forms."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    np.random.seed(0)  # noqa: NPY002  (Tianshou draws from NumPy's global generator)
    print(f"tianshou {version('tianshou')}, gymnasium {gym.__version__}, torch {torch.__version__}")
    print(f"{'environment':18} {'steps':>6} {'episodes':>9} {'mean return':>12} actions")
    for name, arguments in CASES.items():
        check(name, arguments)


if __name__ == "__main__":
    main()
