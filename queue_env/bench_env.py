"""How fast the environments are: steps a second, beside Gymnasium's CartPole in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import gymnasium as gym

from queue_env.vector_env import QueueVectorEnv

__all__ = ["run_env_bench"]

_SYSTEMS = 1024
_ACTIONS = 20
_ROLLOUTS_A_SECOND = 4


def run_env_bench(seconds: float = 2.0) -> list[dict[str, Any]]:
    """Measure steps a second with random actions drawn beforehand; compilation is not counted.

    Args:
        seconds: to measure each line for.

    Returns:
        One row a line: ``environment``, ``systems``, ``threads``, ``steps_per_second``, and ``to_cartpole``, its ratio
        to Gymnasium's CartPole-v1, single. Where Stable-Baselines3 is installed, the last one is of training, with the
        ``environment_share`` of its time.
    """
    rows = [_single("CartPole-v1", gym.make("CartPole-v1"), seconds)]
    rows.append(_single("queue, allocation, flat", gym.make("queue_env/MGn-v0"), seconds))
    small: dict[str, Any] = {"action": "anchor", "observation": "compact"}
    rows.append(_single("queue, anchor, compact", gym.make("queue_env/MGn-v0", **small), seconds))
    for servers in (100, 1000):
        many: dict[str, Any] = {"action": "threshold", "overrides": {"servers": servers}, "jobs": 10**9}
        env = gym.make("queue_env/Impatient100-v0", **many)
        rows.append(_single(f"queue, threshold, n={servers}", env, seconds))
    for threads in (1, 2):
        rows.append(_vector("queue, anchor, compact", threads, seconds, small))
        rows.append(_vector("queue, allocation, flat, K=16", threads, seconds, {}))
    if find_spec("stable_baselines3") is not None:
        from queue_env.sb3.bench import run_ppo_bench

        rows.append(run_ppo_bench(rollouts=max(1, round(_ROLLOUTS_A_SECOND * seconds))))
    yardstick = rows[0]["steps_per_second"]
    return [row | {"to_cartpole": row["steps_per_second"] / yardstick} for row in rows]


def _rate(run: Callable[[], int], seconds: float) -> float:
    run()
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        steps += run()
    return steps / (time.perf_counter() - began)


def _single(name: str, env: gym.Env[Any, Any], seconds: float) -> dict[str, Any]:
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(1000)]
    env.reset(seed=0)

    def run() -> int:
        for action in actions:
            *_, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return len(actions)

    return {"environment": name, "systems": 1, "threads": 1, "steps_per_second": _rate(run, seconds)}


def _vector(name: str, threads: int, seconds: float, arguments: dict[str, Any]) -> dict[str, Any]:
    env = QueueVectorEnv(_SYSTEMS, threads=threads, **arguments)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(_ACTIONS)]
    env.reset(seed=0)

    def run() -> int:
        for action in actions:
            env.step(action)
        return len(actions) * _SYSTEMS

    rate = _rate(run, seconds)
    env.close()
    return {"environment": name, "systems": _SYSTEMS, "threads": threads, "steps_per_second": rate}
