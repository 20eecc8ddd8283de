"""What the trainings by reinforcement learning are made of: starting states, episodes, features, networks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC
from torch import nn

from baselines import make_agent
from queue_env import QueueEnv, QueueVectorEnv, Workload
from queue_env.network import NAMES, network_policy
from queue_env.plan import make_plan
from queue_env.reward import tail_cost
from queue_env.scenarios import scenario
from queue_env.system import System
from tests.networks import random_policy
from train import starts
from train.actors import AnchorFeatures, AnchorPPOPolicy, AnchorSACPolicy, network_of_ppo, network_of_sac
from train.big_jobs import BigJobs
from train.envs import JoinedVecEnv, make_training_env
from train.starts import plain_states

NETWORK = random_policy(3, (4,))


@pytest.mark.parametrize("policy", ["srpt", "split", NETWORK], ids=["srpt", "split", "network"])
def test_from_a_starting_state_the_same_jobs_leave_as_in_the_plain_run(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "_WARMUP", 3000)
    model, seed = scenario("high-load-2"), np.random.SeedSequence(5)
    states = plain_states(model, policy, seed, 40)
    which = int(np.argmax([len(state.jobs) for state in states]))
    assert len(states[which].jobs) > 4
    # The plain run once more, a bit longer, with its records.
    stream, before = model.stream(seed), 3000 + 200 * (which + 1)
    chunk, later = stream.chunk(before), stream.chunk(100)
    system = System(
        make_plan(model, [policy]).settings[0], counted=(0, before + 100), recorded=before + 100, relative=True
    )
    system.feed(chunk)
    present = len(states[which].jobs)
    start = system.now
    system.feed(later)
    system.drain()
    departures = system.memory.records["departure_time"]
    expected = np.sort(departures[departures > start])
    env = QueueEnv(model.to_dict(), action="allocation", observation="dict")
    agent = make_agent(policy, env)
    workload = Workload(later.arrival_times, later.sizes)
    observation, _ = env.reset(seed=0, options={"jobs": states[which].jobs, "workload": workload})
    left: list[float] = []
    over = False
    while not over:
        action, _ = agent.predict(observation)
        observation, _, terminated, truncated, info = env.step(action)
        left += [info["time"]] * info["completions"]
        over = terminated or truncated
    assert len(left) == present + 100
    np.testing.assert_allclose(np.array(left), expected - start, rtol=0, atol=1e-6)


def big_jobs(count: int = 8) -> BigJobs:
    queue = QueueVectorEnv(
        count, autoreset_mode="Disabled", action="anchor", observation="compact", episode="big-job", reward="tail"
    )
    made = BigJobs(queue)
    made.states = plain_states(queue.config.scenario, "srpt", np.random.SeedSequence(1), 20)
    made.sizes = (0.5, 20.0)
    return made


def test_rewards_are_costs_by_weight_over_what_the_big_job_costs_alone() -> None:
    env = big_jobs()
    model = env.env.config.scenario
    cost = tail_cost(model)
    env.reset(seed=3)
    rng, sizes, low, high = np.random.default_rng(0), np.zeros(8), *env.env.config.big_sizes
    first, arrived = np.zeros((2, 8))
    returns, finished, crowds = np.zeros(8), [], []
    ended = np.ones(8, np.bool_)
    for _ in range(600):
        for b in np.flatnonzero(ended).tolist():
            jobs = env.env.batch.present(b)
            sizes[b], arrived[b], returns[b] = jobs["size"].max(), len(jobs), 0.0
            first[b] = model.sizes.pdf(sizes[b]) * sizes[b] * np.log(high / low)
            crowds.append(len(jobs))
            assert jobs["size"][-1] == sizes[b]
            assert 0.5 <= sizes[b] <= 20.0
        _, rewards, terminated, truncated, infos = env.step(rng.random((8, 1)))
        ended = terminated | truncated
        assert not truncated.any()
        expected = -infos["cost"]["tail"] / first / cost.of((sizes + 1.0) / model.c)
        np.testing.assert_allclose(rewards, expected, rtol=1e-9, atol=1e-12)
        returns += rewards
        for b in np.flatnonzero(ended):
            assert infos["final_info"]["episode"]["r"][b] == pytest.approx(returns[b])
            finished.append(returns[b])
        assert (infos["dt"][ended] == 0).all()
        later = env.env.batch.memory.systems["arrived"] - arrived
        np.testing.assert_allclose(infos["weight"][~ended], (model.sizes.cdf(sizes) ** later)[~ended], rtol=1e-9)
    assert len(finished) > 20
    assert max(crowds) > 3
    assert 0.1 < -np.mean(finished) < 10


def test_states_go_on_to_the_bit() -> None:
    env = big_jobs()
    env.reset(seed=3)
    actions = np.random.default_rng(0).random((200, 8, 1))
    for action in actions[:100]:
        env.step(action)
    kept = pickle.loads(pickle.dumps(env.state()))
    rows = [env.step(action)[1] for action in actions[100:]]
    other = big_jobs()
    other.restore(kept)
    np.testing.assert_array_equal(rows, [other.step(action)[1] for action in actions[100:]])


def test_several_scenarios_have_one_space_and_actors_act_as_their_networks() -> None:
    names = ["high-load-2", "high-load-4"]
    models = [scenario(name) for name in names]
    training = make_training_env(models, 7, limit=12.0, gain=3.0, beta=None, most_steps=None)
    env = training.env
    assert isinstance(env, JoinedVecEnv)
    assert [part.num_envs for part in training.parts] == [4, 3]
    model = PPO(
        AnchorPPOPolicy,
        env,
        n_steps=16,
        batch_size=56,
        policy_kwargs={
            "features_extractor_class": AnchorFeatures,
            "features_extractor_kwargs": {"names": NAMES},
            "net_arch": {"pi": [6, 5], "vf": [8]},
        },
        seed=0,
        device="cpu",
    )
    torch.nn.init.normal_(model.policy.action_net.weight)
    network = network_of_ppo(model.policy, NAMES, 3.0)
    agents = [make_agent(network_policy(network, name="net"), part.env) for part in training.parts]
    observations, crowded = env.reset(), 0
    for _ in range(300):
        assert all(row in env.observation_space for row in observations)
        logits, _ = model.predict(observations, deterministic=True)
        rates = 1 / (1 + np.exp(-3 * logits.astype(float)))
        own = [
            agent.predict(part.env.layout.view(part.env.batch.memory.observations.copy()))[0]
            for agent, part in zip(agents, training.parts, strict=True)
        ]
        more = np.concatenate(
            [part.env.batch.memory.systems["number"] > part.env.config.servers for part in training.parts]
        )
        crowded += int(more.sum())
        np.testing.assert_allclose(rates[more], np.concatenate(own)[more], rtol=0, atol=1e-5)
        observations, _, _, _ = env.step(logits)
    assert crowded > 500
    env.close()


def test_the_actor_of_sac_acts_as_its_network() -> None:
    training = make_training_env([scenario("high-load-2")], 4, limit=8.0, beta=None, most_steps=None)
    model = SAC(
        AnchorSACPolicy,
        training.env,
        buffer_size=1000,
        policy_kwargs={
            "features_extractor_class": AnchorFeatures,
            "features_extractor_kwargs": {"names": NAMES[:8]},
            "net_arch": {"pi": [6, 5], "qf": [8]},
            "activation_fn": nn.Tanh,
        },
        seed=0,
        device="cpu",
    )
    torch.nn.init.normal_(model.actor.mu.weight)
    network = network_of_sac(model.policy, NAMES[:8])
    assert network.widths == (8, 6, 5, 1, 1)
    agent = make_agent(network_policy(network, name="net"), training.parts[0].env)
    observations, found = training.env.reset(), []
    for _ in range(200):
        logits, _ = model.predict(observations, deterministic=True)
        rates, _ = agent.predict(observations[:, :-2])
        more = training.parts[0].env.batch.memory.systems["number"] > 2
        np.testing.assert_allclose(1 / (1 + np.exp(-logits.astype(float)))[more], rates[more], rtol=0, atol=1e-5)
        found += rates[more].ravel().tolist()
        observations, _, _, _ = training.env.step(logits)
    assert np.std(found) > 0.05
