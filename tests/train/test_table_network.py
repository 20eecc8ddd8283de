"""The policy over the job table: what permutations and empty rows do, and that PPO takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")

import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from baselines import make_agent
from queue_env.observation import SYSTEM_FEATURES
from queue_env.sb3 import make_sb3_env
from train.table_network import JobTable, TablePolicy

SYSTEM = len(SYSTEM_FEATURES)
SMALL = {"features_extractor_kwargs": {"width": 16, "heads": 2}}
QUICK = {"n_steps": 32, "batch_size": 128, "n_epochs": 2, "device": "cpu", "seed": 0, "policy_kwargs": SMALL}


@pytest.fixture(params=["flat", "dict"])
def env(request: pytest.FixtureRequest) -> VecEnv:
    return make_sb3_env(num_envs=8, observation=request.param, symmetric_actions=True, jobs=40)


def some_observations(env: VecEnv, steps: int = 30) -> Any:
    """Observations of many kinds, as one batch."""
    env.seed(1)
    batch, rng = [env.reset()], np.random.default_rng(1)
    for _ in range(steps):
        actions = rng.uniform(-1, 1, (env.num_envs, *env.action_space.shape)).astype(np.float32)
        batch.append(env.step(actions)[0])
    if isinstance(batch[0], dict):
        return {name: np.concatenate([part[name] for part in batch]) for name in batch[0]}
    return np.concatenate(batch)


def changed_rows(observations: Any, slots: int, change: Any) -> Any:
    """The observations with another table: `change` maps rows, shape (B, K, ...), to rows."""
    if isinstance(observations, dict):
        return {name: change(part) if part.shape[1] == slots else part for name, part in observations.items()}
    rows = observations[:, SYSTEM:].reshape(len(observations), slots, -1)
    return np.concatenate([observations[:, :SYSTEM], change(rows).reshape(len(observations), -1)], axis=1)


def some_policy(env: VecEnv) -> TablePolicy:
    """A policy with weights at random, which are larger than at the beginning of a training."""
    torch.manual_seed(3)
    policy = TablePolicy(env.observation_space, env.action_space, lambda _: 1e-3, **SMALL)
    nn.init.normal_(policy.mlp_extractor.actor[-1].weight)
    return policy


def outputs(policy: TablePolicy, observations: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean actions, values, and log-densities of sampled actions and entropies."""
    given, _ = policy.obs_to_tensor(observations)
    with torch.no_grad():
        actions, values, _ = policy(given, deterministic=True)
        _, densities, entropies = policy.evaluate_actions(given, actions + 0.1)
    return actions.numpy(), values.numpy(), densities.numpy(), entropies.numpy()


# ---- symmetry ------------------------------------------------------------------------------------


def test_permuting_the_rows_permutes_the_actions_and_nothing_else(env: VecEnv) -> None:
    policy, observations = some_policy(env), some_observations(env)
    slots = env.action_space.shape[0]
    order = np.random.default_rng(2).permutation(slots)
    before = outputs(policy, observations)
    after = outputs(policy, changed_rows(observations, slots, lambda rows: rows[:, order]))
    np.testing.assert_allclose(after[0], before[0][:, order], atol=1e-5)
    for one, other in zip(before[1:], after[1:], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)
    assert np.std(before[0]) > 0.05
    assert np.std(before[1]) > 0.01


def test_in_float64_the_symmetry_is_exact_but_for_rounding() -> None:
    env = make_sb3_env(num_envs=8, jobs=40)
    slots, observations = env.action_space.shape[0], some_observations(env)
    table = JobTable(env.observation_space, slots, width=16, heads=2).double()
    order = np.random.default_rng(2).permutation(slots)
    permuted = changed_rows(observations, slots, lambda rows: rows[:, order])
    with torch.no_grad():
        one, other = (table(torch.from_numpy(x).double()).numpy() for x in (observations, permuted))
    size = slots * 16
    rows = one[:, :size].reshape(-1, slots, 16)
    np.testing.assert_allclose(other[:, :size].reshape(-1, slots, 16), rows[:, order], atol=1e-12)
    np.testing.assert_allclose(other[:, size + slots :], one[:, size + slots :], atol=1e-12)


def test_what_stands_in_rows_without_a_job_does_not_matter(env: VecEnv) -> None:
    policy, observations = some_policy(env), some_observations(env)
    slots = env.action_space.shape[0]
    present = observations["present"] if isinstance(observations, dict) else observations[:, SYSTEM:]
    present = present.reshape(len(present), slots, -1)[..., -1] > 0.5
    assert 0.05 < present.mean() < 0.9

    def with_junk(rows: np.ndarray) -> np.ndarray:
        junk = rows.copy()
        kept = present if rows.ndim == 2 else present[..., None]
        junk = np.where(kept, junk, junk + 3.0)
        if rows.ndim == 3:
            junk[..., -1] = rows[..., -1]
        return junk.astype(rows.dtype)

    changed = changed_rows(observations, slots, with_junk)
    if isinstance(changed, dict):
        changed["present"] = observations["present"]
    before, after = outputs(policy, observations), outputs(policy, changed)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-6)
    assert np.all(before[0][~present] == 0.0)


def test_an_empty_system_gives_numbers() -> None:
    env = make_sb3_env(num_envs=2, jobs=40)
    nothing = np.zeros((2, *env.observation_space.shape), np.float32)
    for part in outputs(some_policy(env), nothing):
        assert np.isfinite(part).all()


def test_densities_are_of_jobs_present_only() -> None:
    env = make_sb3_env(num_envs=8, jobs=40)
    policy, observations = some_policy(env), some_observations(env)
    given, _ = policy.obs_to_tensor(observations)
    number = np.rint(np.expm1(observations[:, 0]))
    shown = np.minimum(number, env.action_space.shape[0])
    each = 0.5 * np.log(2 * np.pi * np.e)  # entropy of a standard normal number
    with torch.no_grad():
        distribution = policy.get_distribution(given)
        sampled = distribution.get_actions().numpy()
        np.testing.assert_allclose(distribution.entropy().numpy(), shown * each, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal((sampled != 0.0).sum(axis=1), shown)


# ---- learning ------------------------------------------------------------------------------------


def test_it_can_learn_to_serve_the_smallest() -> None:
    """By imitation, from at least four jobs: the two of `srpt`, which one in six guesses would be at best."""
    env = make_sb3_env(num_envs=64, jobs=200)
    observations = some_observations(env, 60)
    crowded = observations[observations[:, 0] > np.log(4.5)][:300]
    wanted = torch.from_numpy(np.asarray(make_agent("srpt", env).predict(crowded)[0], np.float32))
    given, policy = torch.from_numpy(crowded), some_policy(env)
    optimizer = torch.optim.Adam(policy.parameters(), 5e-3)
    for _ in range(150):
        rates = policy.get_distribution(given).distribution.mean
        loss = ((rates - wanted) ** 2).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    top, best = (part.topk(2, dim=1).indices.sort(dim=1).values for part in (rates, wanted))
    assert len(crowded) > 200
    assert (top == best).all(dim=1).float().mean() > 0.5


def test_ppo_trains_saves_and_loads(env: VecEnv, tmp_path: Path) -> None:
    model = PPO(TablePolicy, env, **QUICK)
    before = [part.detach().clone() for part in model.policy.parameters()]
    model.learn(4096)
    after = list(model.policy.parameters())
    assert all(torch.isfinite(part).all() for part in after)
    assert sum(not torch.equal(one, other) for one, other in zip(before, after, strict=True)) > len(after) - 2
    model.save(tmp_path / "model")
    again = PPO.load(tmp_path / "model", device="cpu")
    assert isinstance(again.policy, TablePolicy)
    observations = some_observations(env, 3)
    np.testing.assert_array_equal(
        again.predict(observations, deterministic=True)[0], model.predict(observations, deterministic=True)[0]
    )
    model.policy.save(tmp_path / "policy")
    alone = TablePolicy.load(tmp_path / "policy", device="cpu")
    np.testing.assert_array_equal(
        alone.predict(observations, deterministic=True)[0], model.predict(observations, deterministic=True)[0]
    )


def test_the_same_seed_gives_the_same_policy() -> None:
    def trained() -> list[Any]:
        env = make_sb3_env(num_envs=8, symmetric_actions=True, jobs=40)
        return list(PPO(TablePolicy, env, **QUICK).learn(512).policy.parameters())

    assert all(torch.equal(one, other) for one, other in zip(trained(), trained(), strict=True))


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"action": "rule"}, "TablePolicy: action must be 'allocation' or 'priority'"),
        ({"action": "anchor", "observation": "dict"}, "TablePolicy: action must be"),
        ({"action": "anchor", "observation": "flat"}, "TablePolicy: action must be"),
    ],
)
def test_other_environments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PPO(TablePolicy, make_sb3_env(num_envs=2, **arguments), device="cpu")


@pytest.mark.parametrize("sizes", [{"width": 10, "heads": 3}, {"width": 0}, {"heads": 0}])
def test_heads_that_cannot_share_the_width(sizes: dict[str, int]) -> None:
    env = make_sb3_env(num_envs=2, action="allocation")
    with pytest.raises(ValueError, match=r"TablePolicy: (width|heads) must be .*, got \d"):
        PPO(TablePolicy, env, policy_kwargs={"features_extractor_kwargs": sizes}, device="cpu")


def test_noise_that_depends_on_the_state() -> None:
    env = make_sb3_env(num_envs=2)
    with pytest.raises(ValueError, match="TablePolicy: use_sde must be False"):
        PPO(TablePolicy, env, use_sde=True, device="cpu")


def test_another_space() -> None:
    with pytest.raises(ValueError, match="TablePolicy: observation must be"):
        JobTable(spaces.Box(0, 1, (12,)), slots=16)
