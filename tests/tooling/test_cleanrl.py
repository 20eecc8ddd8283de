"""PPO in one file after the manner of CleanRL, on the vector environment as Gymnasium makes it, in its default mode.

In the mode NEXT_STEP the call after the end of an episode ignores the action and only resets. What it returns is no
transition: it is masked in the advantages and left out of the batches. The observation that comes with the end is that
episode's last, so the value of a truncated episode goes on from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("torch", reason="needs PyTorch: pip install torch")

import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn
from torch.distributions import Categorical, Independent, Normal

from queue_env.wrappers import TimeDiscountVector
from tests.tooling.watch import ID, Watch, assert_learned, assert_same_episodes, parameters_of

BETA, LAMBDA, CLIP = 0.01, 0.95, 0.2
ANCHOR: dict[str, Any] = {"action": "anchor", "observation": "compact", "symmetric_actions": True, "jobs": 20}
RULE: dict[str, Any] = {"action": "rule", "rules": ["srpt", "fcfs", "ps"], "observation": "compact", "jobs": 20}


class Agent(nn.Module):
    """A network for the actions, one for the value."""

    def __init__(self, envs: Any) -> None:
        super().__init__()
        columns = gym.spaces.flatdim(envs.single_observation_space)
        self.discrete = isinstance(envs.single_action_space, gym.spaces.Discrete)
        outputs = int(envs.single_action_space.n if self.discrete else envs.single_action_space.shape[0])
        self.actor = nn.Sequential(nn.Linear(columns, 32), nn.Tanh(), nn.Linear(32, outputs))
        self.critic = nn.Sequential(nn.Linear(columns, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.zeros(outputs))

    def policy(self, observations: torch.Tensor) -> Any:
        out = self.actor(observations)
        return Categorical(logits=out) if self.discrete else Independent(Normal(out, self.log_std.exp()), 1)

    def value(self, observations: torch.Tensor) -> torch.Tensor:
        return self.critic(observations).squeeze(-1)


class Rollout(NamedTuple):
    """T steps of B environments: all are of shape (T, B), observations and actions (T, B, columns)."""

    observations: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    rewards: torch.Tensor
    after: torch.Tensor  # observations after the steps
    terminated: torch.Tensor
    done: torch.Tensor
    discounts: torch.Tensor
    real: torch.Tensor  # False where the call only reset


def rollouts(envs: Any, agent: Agent, steps: int, count: int, seed: int) -> Iterator[Rollout]:
    """Make steps, and give them in rollouts of so many."""
    space = envs.single_action_space
    shown, _ = envs.reset(seed=seed)
    over = np.zeros(envs.num_envs, bool)
    for _ in range(count):
        rows = []
        for _ in range(steps):
            observations = torch.as_tensor(shown, dtype=torch.float32)
            with torch.no_grad():
                distribution = agent.policy(observations)
                actions = distribution.sample()
                log_probs = distribution.log_prob(actions)
            given = actions.numpy() if agent.discrete else actions.numpy().clip(space.low, space.high)
            shown, rewards, terminated, truncated, infos = envs.step(given)
            done = terminated | truncated
            outcome = (rewards, shown, terminated, done, infos["discount"], ~over)
            tensors = [torch.as_tensor(np.array(x), dtype=torch.float32) for x in outcome]
            rows.append((observations, actions, log_probs, *tensors))
            over = done
        yield Rollout(*(torch.stack(column) for column in zip(*rows, strict=True)))


def advantages(agent: Agent, batch: Rollout) -> tuple[torch.Tensor, torch.Tensor]:
    """Generalised advantages, and values, with the discount of each step; both are meaningful for real steps only."""
    with torch.no_grad():
        values = agent.value(batch.observations)
        values_after = agent.value(batch.after) * (1 - batch.terminated)
    errors = batch.rewards + batch.discounts * values_after - values
    result, ahead = torch.zeros_like(errors), torch.zeros(errors.shape[1])
    for t in reversed(range(len(errors))):
        # Nothing is carried back over an end; a call that only resets comes just after one.
        ahead = errors[t] + batch.discounts[t] * LAMBDA * (1 - batch.done[t]) * ahead
        result[t] = ahead
    return result, values


def learn(agent: Agent, optimiser: torch.optim.Optimizer, batch: Rollout, epochs: int = 2) -> None:
    """Make PPO's gradient steps on a rollout."""
    gains, values = advantages(agent, batch)
    real = batch.real.bool()
    observations, actions, old = batch.observations[real], batch.actions[real], batch.log_probs[real]
    gain, target = gains[real], (gains + values)[real]
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    for _ in range(epochs):
        for part in torch.randperm(len(gain)).split(64):
            ratio = (agent.policy(observations[part]).log_prob(actions[part]) - old[part]).exp()
            policy_loss = -torch.min(gain[part] * ratio, gain[part] * ratio.clip(1 - CLIP, 1 + CLIP)).mean()
            value_loss = 0.5 * (agent.value(observations[part]) - target[part]).square().mean()
            optimiser.zero_grad()
            (policy_loss + 0.5 * value_loss).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimiser.step()


@pytest.mark.parametrize("arguments", [ANCHOR, RULE], ids=["anchor", "rule"])
def test_ppo(arguments: dict[str, Any]) -> None:
    torch.manual_seed(0)
    native = gym.make_vec(ID, num_envs=8, **arguments)
    watch = Watch(native)
    statistics = RecordEpisodeStatistics(native)
    envs = TimeDiscountVector(statistics, BETA)
    agent = Agent(envs)
    optimiser = torch.optim.Adam(agent.parameters(), 1e-3)
    before, real = parameters_of(agent), 0
    for batch in rollouts(envs, agent, steps=64, count=3, seed=0):
        assert batch.observations.shape[:2] == batch.rewards.shape == (64, 8)
        assert torch.isfinite(batch.rewards).all()
        learn(agent, optimiser, batch)
        real += int(batch.real.sum())
    assert_learned(before, parameters_of(agent))
    assert real == watch.steps < 3 * 64 * 8
    assert_same_episodes(watch, statistics.length_queue, statistics.return_queue)
    assert set(watch.served) == {20}
    envs.close()


def test_resets_are_no_transitions() -> None:
    """What a masked call holds has no influence, and a truncated episode goes on in value from its own last state."""
    torch.manual_seed(0)
    envs = TimeDiscountVector(gym.make_vec(ID, num_envs=4, **ANCHOR), BETA)
    agent = Agent(envs)
    batch = next(rollouts(envs, agent, steps=128, count=1, seed=0))
    resets = ~batch.real.bool()
    assert resets.sum() > 4
    assert (batch.rewards[resets] == 0).all()
    assert (batch.discounts[resets] == 1).all()
    gains, values = advantages(agent, batch)
    nonsense = batch._replace(
        rewards=torch.where(resets, 1e6, batch.rewards), actions=torch.where(resets[..., None], 9.0, batch.actions)
    )
    changed, _ = advantages(agent, nonsense)
    torch.testing.assert_close(changed[~resets], gains[~resets])
    last = batch.done.bool()
    with torch.no_grad():
        expected = batch.rewards + batch.discounts * agent.value(batch.after) - values
    torch.testing.assert_close(gains[last], expected[last])
    # The last state has other jobs than the next start, which has the one that arrives first.
    starts = batch.after[resets][:, 0]
    torch.testing.assert_close(starts, torch.full_like(starts, 2.0).log())
    envs.close()
