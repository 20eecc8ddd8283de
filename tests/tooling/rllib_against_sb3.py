"""RLlib's PPO and that of Stable-Baselines3, trained alike by equally many decisions, and their tail scores.

It is no test of the test suite, since it takes minutes, and RLlib wants a Gymnasium of its own. In a virtual
environment with `ray[rllib]` and `stable-baselines3`, from the root of a checkout:

    OMP_NUM_THREADS=1 python -m tests.tooling.rllib_against_sb3 --steps 1e6

It prints the scores with their intervals, and by which share RLlib's is larger.
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

import numpy as np
import ray
import torch
from stable_baselines3 import PPO

from queue_env import score_all
from queue_env.network import Network, network_policy
from queue_env.sb3 import SB3VecEnv
from train.inputs_env import make_inputs_env, network_of_layers
from train.rllib_ppo import PPOSettings, learn


def by_sb3(settings: PPOSettings) -> Network:
    """Train by Stable-Baselines3 with the same settings, as far as both have them."""
    env = make_inputs_env(
        settings.scenario,
        settings.systems,
        big_sizes=settings.big_sizes,
        most_steps=settings.most_steps,
        mode="SameStep",
    )
    model = PPO(
        "MlpPolicy",
        SB3VecEnv(env),
        learning_rate=settings.learning_rate,
        n_steps=settings.rollout,
        batch_size=settings.minibatch,
        n_epochs=settings.epochs,
        gamma=1.0,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip,
        ent_coef=settings.entropy,
        vf_coef=0.5,
        max_grad_norm=0.5,
        policy_kwargs={"net_arch": [settings.hidden] * 2, "activation_fn": torch.nn.Tanh},
        seed=settings.seed,
        device="cpu",
    )
    model.learn(settings.steps)
    parts = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    return network_of_layers(
        [
            (part.weight.detach().numpy(), part.bias.detach().numpy())
            for part in parts
            if isinstance(part, torch.nn.Linear)
        ]
    )


def main() -> None:
    """Train by both, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="high-load-2")
    parser.add_argument("--steps", type=float, default=1e6)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--width", type=float, default=0.025)
    given: Any = parser.parse_args()
    torch.set_num_threads(1)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    policies: dict[str, Any] = {}
    for seed in range(given.seeds):
        settings = PPOSettings(scenario=given.scenario, steps=int(given.steps), seed=seed)
        for name, train in (("rllib", lambda s: learn(s, None, lambda *_: None)), ("sb3", by_sb3)):
            began = time.perf_counter()
            policies[f"{name}-{seed}"] = network_policy(train(settings), name=f"{name}-{seed}")
            print(f"{name}-{seed}: trained in {time.perf_counter() - began:.0f} s", flush=True)
    ray.shutdown()
    scores = score_all(
        ["srpt", *policies.values()],
        given.scenario,
        rel_half_width=given.width,
        plain_jobs=100_000,
        most_jobs=1e8,
        seed=77,
    )
    for row in scores:
        print(f"{row.policy:10} {row.score:.4f} ({row.low:.4f} to {row.high:.4f})")
    shares = []
    for seed in range(given.seeds):
        value, low, high, _ = scores.difference(f"rllib-{seed}", f"sb3-{seed}")
        base = scores.named(f"sb3-{seed}").score
        shares.append(value / base)
        more, least, most = (100 * end / base for end in (value, low, high))
        print(f"seed {seed}: RLlib's is larger by {more:.1f} % ({least:.1f} to {most:.1f})")
    print(f"on average by {100 * float(np.mean(shares)):.1f} %")


if __name__ == "__main__":
    main()
