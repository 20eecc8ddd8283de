"""The buffers for Stable-Baselines3 discount each step by the time it took.

The observations of the toy environment say which step is next, so that what a buffer says of a step can be compared
with what is known of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")

import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer, RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

from queue_env.sb3 import (
    DiscountedRewards,
    SB3VecEnv,
    TimeAwareDictReplayBuffer,
    TimeAwareDictRolloutBuffer,
    TimeAwareReplayBuffer,
    TimeAwareRolloutBuffer,
    VecDiscount,
)
from queue_env.wrappers import TimeDiscountVector
from tests.tickers import as_vector, is_cut, reward, step_time, steps, tickers

BETA = 0.3
NEXT = np.array([0, 0, 1])
ROLLOUT = {"vector": ("MlpPolicy", TimeAwareRolloutBuffer), "dict": ("MultiInputPolicy", TimeAwareDictRolloutBuffer)}
REPLAY = {"vector": ("MlpPolicy", TimeAwareReplayBuffer), "dict": ("MultiInputPolicy", TimeAwareDictReplayBuffer)}
FORMS = ["vector", "dict"]


def env(count: int = 4, **arguments: Any) -> VecEnv:
    return SB3VecEnv(TimeDiscountVector(tickers(count, **arguments), BETA))


def discounts(shown: Any) -> Any:
    return np.exp(-BETA * step_time(as_vector(shown)))


# ---- replay ------------------------------------------------------------------------------------------


def off_policy(algorithm: Any, form: str, venv: VecEnv, **arguments: Any) -> Any:
    policy, buffer = REPLAY[form]
    return algorithm(
        policy,
        venv,
        replay_buffer_class=buffer,
        buffer_size=400,
        learning_starts=40,
        batch_size=16,
        policy_kwargs={"net_arch": [16]},
        seed=3,
        device="cpu",
        **arguments,
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", ["discount", "dt"])
def test_samples_have_the_discount_of_their_step(form: str, source: str) -> None:
    if source == "discount":
        model = off_policy(SAC, form, env(form=form))
    else:
        model = off_policy(SAC, form, SB3VecEnv(tickers(4, form=form)), replay_buffer_kwargs={"beta": BETA})
    model.learn(500)
    assert model.replay_buffer.full
    check_samples(model.replay_buffer.sample(2000))


def test_samples_when_memory_is_saved() -> None:
    # There the next observation is that of the next step, so after an end it is the first of an episode.
    model = off_policy(
        SAC,
        "vector",
        env(),
        optimize_memory_usage=True,
        replay_buffer_kwargs={"handle_timeout_termination": False},
    )
    model.learn(500)
    samples = model.replay_buffer.sample(2000)
    shown = samples.observations.numpy()
    np.testing.assert_allclose(samples.discounts[:, 0], discounts(shown), rtol=1e-6)
    np.testing.assert_allclose(samples.rewards[:, 0], reward(shown), rtol=1e-5)
    going_on = samples.dones[:, 0] == 0
    np.testing.assert_array_equal(samples.next_observations[going_on], shown[going_on] + NEXT)


@pytest.mark.parametrize("form", FORMS)
def test_samples_are_otherwise_the_parent_s(form: str) -> None:
    parent, policy = (ReplayBuffer, "MlpPolicy") if form == "vector" else (DictReplayBuffer, "MultiInputPolicy")
    venv = VecNormalize(env(form=form))
    model = off_policy(SAC, form, venv).learn(300)
    other = SAC(
        policy, VecNormalize(env(form=form)), replay_buffer_class=parent, buffer_size=400, device="cpu"
    ).replay_buffer
    for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts", "pos", "full"):
        setattr(other, name, getattr(model.replay_buffer, name))
    both = []
    for buffer in (model.replay_buffer, other):
        np.random.seed(5)  # noqa: NPY002
        both.append(buffer.sample(64, env=venv)._asdict())
    mine, theirs = both
    assert mine.pop("discounts").shape == (64, 1)
    assert theirs.pop("discounts") is None
    for name, expected in theirs.items():
        parts = expected if isinstance(expected, dict) else {"": expected}
        for key, value in parts.items():
            got = mine[name][key] if key else mine[name]
            assert got.dtype == value.dtype
            torch.testing.assert_close(got, value, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("algorithm", "kind", "form"), [(SAC, "box", "vector"), (TD3, "box", "dict"), (DQN, "discrete", "vector")]
)
def test_algorithms_use_the_discounts_and_not_gamma(algorithm: Any, kind: str, form: str) -> None:
    model = off_policy(algorithm, form, VecMonitor(env(form=form, actions=kind)), gamma=float("nan")).learn(400)
    assert model._n_updates > 20
    assert all(torch.isfinite(weights).all() for weights in model.policy.parameters())


def test_replay_with_vec_normalize_keeps_pairs() -> None:
    model = off_policy(SAC, "vector", VecNormalize(env())).learn(300)
    # Without the environment, samples are as they were stored: not normalized.
    samples = model.replay_buffer.sample(500)
    np.testing.assert_allclose(samples.discounts[:, 0], discounts(samples.observations.numpy()), rtol=1e-6)


def test_replay_buffer_is_saved_with_its_discounts(tmp_path: Any) -> None:
    model = off_policy(SAC, "vector", env()).learn(200)
    model.save_replay_buffer(tmp_path / "buffer")
    model.save(tmp_path / "model")
    loaded = SAC.load(tmp_path / "model", env=env(), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer")
    np.testing.assert_array_equal(loaded.replay_buffer.discounts, model.replay_buffer.discounts)
    check_samples(loaded.learn(100, reset_num_timesteps=False).replay_buffer.sample(200))


def test_replay_refuses_what_it_cannot_use() -> None:
    with pytest.raises(ValueError, match="TimeAwareReplayBuffer: beta must be a finite number > 0, got 0"):
        off_policy(SAC, "vector", env(), replay_buffer_kwargs={"beta": 0})
    with pytest.raises(ValueError, match="for which there is TimeAwareDictReplayBuffer"):
        SAC("MultiInputPolicy", env(form="dict"), replay_buffer_class=TimeAwareReplayBuffer, buffer_size=10)
    without = off_policy(SAC, "vector", SB3VecEnv(tickers(2)))
    with pytest.raises(ValueError, match=r"infos must be with 'discount' .*\(or give beta.*got 'none in infos\[0\]'"):
        without.learn(10)
    untimed = off_policy(SAC, "vector", SB3VecEnv(tickers(2, timed=False)), replay_buffer_kwargs={"beta": BETA})
    with pytest.raises(ValueError, match="infos must be with 'dt' for every environment, got"):
        untimed.learn(10)


def check_samples(samples: Any) -> None:
    """What samples say of a step must be what is known of the step that the observation names."""
    shown, following = as_vector(as_numpy(samples.observations)), as_vector(as_numpy(samples.next_observations))
    assert samples.discounts.dtype == torch.float32
    np.testing.assert_allclose(samples.discounts[:, 0], discounts(shown), rtol=1e-6)
    np.testing.assert_allclose(samples.rewards[:, 0], reward(shown), rtol=1e-5)
    np.testing.assert_array_equal(following, shown + NEXT)
    ends = [
        t + 1 == steps(int(i), int(episode)) and not is_cut(int(i), int(episode)) for i, episode, t in shown.tolist()
    ]
    assert 0 < sum(ends) < len(ends)
    np.testing.assert_array_equal(samples.dones[:, 0], np.array(ends, np.float32))


def as_numpy(shown: Any) -> Any:
    return {key: value.numpy() for key, value in shown.items()} if isinstance(shown, dict) else shown.numpy()


# ---- rollouts ----------------------------------------------------------------------------------------


class Watch(BaseCallback):
    """Keeps what the steps of the first rollout were, and the advantages and returns that the buffer made of them."""

    def _on_training_start(self) -> None:
        self.shown: list[Any] = []
        self.rewards: list[Any] = []
        self.infos: list[Any] = []
        self.advantages: Any = None

    def _on_step(self) -> bool:
        if self.advantages is None:
            self.shown.append(self.model._last_obs)
            self.rewards.append(np.array(self.locals["rewards"]))
            self.infos.append(self.locals["infos"])
        return True

    def _on_rollout_end(self) -> None:
        if self.advantages is None:
            self.advantages, self.returns = (
                self.locals["rollout_buffer"].advantages,
                self.locals["rollout_buffer"].returns,
            )
            self.advantages, self.returns = self.advantages.copy(), self.returns.copy()
            self.shown.append(self.locals["new_obs"])
            self.expected = self._expected()

    def _value(self, shown: Any) -> Any:
        with torch.no_grad():
            return self.model.policy.predict_values(self.model.policy.obs_to_tensor(shown)[0]).numpy()[:, 0]

    def _expected(self) -> Any:
        """Advantages by their definition, a sum over the steps to come, with the policy that made the steps."""
        length, count = np.shape(self.rewards)
        lam = self.model.gae_lambda
        values = np.array([self._value(shown) for shown in self.shown], np.float64)
        discount = np.array([[info["discount"] for info in infos] for infos in self.infos])
        over = np.array([["terminal_observation" in info for info in infos] for infos in self.infos])
        errors = np.empty((length, count))
        for t in range(length):
            for i in range(count):
                info, following = self.infos[t][i], values[t + 1, i]
                if over[t, i]:
                    cut = info["TimeLimit.truncated"]
                    following = self._value(info["terminal_observation"])[0] if cut else 0.0
                errors[t, i] = self.rewards[t][i] + discount[t, i] * following - values[t, i]
        expected = np.zeros((length, count))
        for t in range(length):
            for i in range(count):
                factor = 1.0
                for k in range(t, length):
                    expected[t, i] += factor * errors[k, i]
                    factor *= lam * discount[k, i]
                    if over[k, i]:
                        break
        return expected


def on_policy(algorithm: Any, form: str, venv: VecEnv, **arguments: Any) -> Any:
    policy, buffer = ROLLOUT[form]
    given: dict[str, Any] = {"gamma": 1.0, "n_steps": 25, "gae_lambda": 0.9, "rollout_buffer_class": buffer}
    if algorithm is PPO:
        given |= {"batch_size": 50, "n_epochs": 2}
    return algorithm(policy, venv, seed=2, device="cpu", policy_kwargs={"net_arch": [16]}, **given | arguments)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", [PPO, A2C])
@pytest.mark.parametrize("normalized", [False, True])
def test_advantages(algorithm: Any, form: str, normalized: bool) -> None:
    venv = env(form=form)
    model = on_policy(algorithm, form, VecDiscount(VecNormalize(venv) if normalized else VecMonitor(venv)))
    watch = Watch()
    model.learn(300, callback=watch)
    assert model.num_timesteps == 300
    ends = [info for infos in watch.infos for info in infos if "terminal_observation" in info]
    assert {info["TimeLimit.truncated"] for info in ends} == {True, False}
    np.testing.assert_allclose(watch.advantages, watch.expected, rtol=1e-4, atol=1e-5)
    if not normalized:
        # What the environment reports is right.
        shown = np.stack([as_vector(shown) for shown in watch.shown[:-1]])
        reported = [[info["discount"] for info in infos] for infos in watch.infos]
        np.testing.assert_allclose(reported, discounts(shown), rtol=1e-12)


def test_a_rollout_may_end_where_an_episode_does() -> None:
    # Episodes of environment 0 have 3, 4, 5 and 6 steps; the first is cut.
    assert (steps(0, 0), is_cut(0, 0)) == (3, True)
    model = on_policy(PPO, "vector", VecDiscount(env(2)), n_steps=3, batch_size=6)
    watch = Watch()
    model.learn(6, callback=watch)
    assert "terminal_observation" in watch.infos[2][0]
    np.testing.assert_allclose(watch.advantages, watch.expected, rtol=1e-4, atol=1e-5)


def test_equal_times_are_a_constant_gamma() -> None:
    rng = np.random.default_rng(4)
    space = tickers(2).single_observation_space, tickers(2).single_action_space
    plain = RolloutBuffer(12, *space, "cpu", 0.8, 0.93, 2)
    timed = TimeAwareRolloutBuffer(12, *space, "cpu", 0.8, 1.0, 2)
    for _ in range(12):
        paid, value = rng.normal(size=2), torch.tensor(rng.normal(size=2), dtype=torch.float32)
        starts, cut, last = rng.random(2) < 0.3, rng.random(2) < 0.3, rng.normal(size=2)
        shown, action, chance = np.zeros((2, 3)), np.zeros((2, 2)), torch.zeros(2)
        plain.add(shown, action, paid + 0.93 * cut * last, starts, value, chance)
        rewards = DiscountedRewards(paid, np.full(2, 0.93))
        rewards += cut * last
        timed.add(shown, action, rewards, starts, value, chance)
    for buffer in (plain, timed):
        buffer.compute_returns_and_advantage(torch.tensor([[0.4], [-1.0]]), np.array([True, False]))
    np.testing.assert_allclose(timed.rewards, plain.rewards, atol=1e-6)
    np.testing.assert_allclose(timed.advantages, plain.advantages, atol=1e-6)
    np.testing.assert_allclose(timed.returns, plain.returns, atol=1e-6)


def test_beta_of_vec_discount() -> None:
    model = on_policy(PPO, "vector", VecDiscount(SB3VecEnv(tickers(4)), beta=BETA))
    model.learn(100)
    kept = model.rollout_buffer
    shown = kept.observations.reshape(4, 25, 3).swapaxes(0, 1)
    np.testing.assert_allclose(kept.discounts, discounts(shown), rtol=1e-6)


def test_saved_models_go_on(tmp_path: Any) -> None:
    model = on_policy(PPO, "vector", VecDiscount(env())).learn(100)
    model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", env=VecDiscount(env()), device="cpu")
    assert type(loaded.rollout_buffer) is TimeAwareRolloutBuffer
    assert loaded.learn(100).num_timesteps == 100


def test_rollout_refuses_what_it_cannot_use() -> None:
    with pytest.raises(ValueError, match=r"TimeAwareRolloutBuffer: gamma must be 1\.0, .*got 0\.99"):
        on_policy(PPO, "vector", VecDiscount(env()), gamma=0.99)
    with pytest.raises(ValueError, match="for which there is TimeAwareDictRolloutBuffer"):
        on_policy(PPO, "dict", VecDiscount(env(form="dict")), rollout_buffer_class=TimeAwareRolloutBuffer)
    for venv in (env(), VecNormalize(VecDiscount(env())), VecNormalize(VecDiscount(env()), norm_reward=False)):
        with pytest.raises(ValueError, match="env must be wrapped in VecDiscount, outside of VecNormalize"):
            on_policy(PPO, "vector", venv).learn(10)
    with pytest.raises(ValueError, match="VecDiscount: infos must be with 'discount' for every environment"):
        on_policy(PPO, "vector", VecDiscount(SB3VecEnv(tickers(2)))).learn(10)
    with pytest.raises(ValueError, match="VecDiscount: beta must be a finite number > 0, got -1"):
        VecDiscount(env(), beta=-1)


def test_wrappers_that_leave_rewards_alone_may_be_outside() -> None:
    assert on_policy(PPO, "vector", VecMonitor(VecDiscount(env()))).learn(100).num_timesteps == 100
