"""Stable-Baselines3 and its contributed learners take the environments: a few hundred steps of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

stable_baselines3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")

from queue_env.sb3 import make_sb3_env  # noqa: E402

CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "ppo-anchor": (
        "PPO",
        "MlpPolicy",
        {"action": "anchor", "observation": "compact", "episode": "big-job"},
        {"n_steps": 32, "batch_size": 64, "n_epochs": 2},
    ),
    "ppo-dict": ("PPO", "MultiInputPolicy", {"observation": "dict"}, {"n_steps": 32, "batch_size": 64, "n_epochs": 2}),
    "a2c-priority": ("A2C", "MlpPolicy", {"action": "priority"}, {"n_steps": 16}),
    "sac-allocation": ("SAC", "MlpPolicy", {"symmetric_actions": True}, {"learning_starts": 64, "batch_size": 32}),
    "dqn-rule": ("DQN", "MlpPolicy", {"action": "rule"}, {"learning_starts": 64, "batch_size": 32}),
}


@pytest.mark.parametrize("case", CASES)
def test_learners_train(case: str) -> None:
    name, policy, arguments, settings = CASES[case]
    env = make_sb3_env(num_envs=4, jobs=20, **arguments)
    model = getattr(stable_baselines3, name)(policy, env, seed=0, device="cpu", **settings)
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(256)
    after = list(model.policy.parameters())
    assert any(not np.allclose(a.numpy(), b.detach().numpy()) for a, b in zip(before, after, strict=True))
    assert all(np.isfinite(b.detach().numpy()).all() for b in after)
    action, _ = model.predict(env.reset(), deterministic=True)
    assert len(action) == 4
    env.close()
