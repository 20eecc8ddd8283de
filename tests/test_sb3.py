"""The vector environment as a ``VecEnv`` of Stable-Baselines3 does what that library's own ``DummyVecEnv`` does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")

from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from queue_env.sb3 import SB3VecEnv, make_sb3_env
from queue_env.wrappers import TimeDiscount, TimeDiscountVector
from tests.tickers import Ticker, as_vector, tickers

ID = "tests/Tickers-v0"
BETA = 0.3


@pytest.fixture
def registered() -> Iterator[str]:
    gym.register(ID, vector_entry_point="tests.tickers:tickers")
    yield ID
    del gym.registry[ID]


def actions(venv: Any) -> Any:
    return np.array([venv.action_space.sample() for _ in range(venv.num_envs)])


# ---- steps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["vector", "dict"])
@pytest.mark.parametrize("kind", ["box", "discrete"])
def test_does_what_dummy_vec_env_does(form: str, kind: str) -> None:
    venv = SB3VecEnv(TimeDiscountVector(tickers(4, form=form, actions=kind), BETA))
    other = DummyVecEnv([lambda i=i: TimeDiscount(Ticker(i, kind, form), BETA) for i in range(4)])
    assert venv.observation_space == other.observation_space
    assert venv.action_space == other.action_space
    np.testing.assert_array_equal(as_vector(venv.reset()), as_vector(other.reset()))
    assert venv.reset_infos == [{"dt": 0.0, "weight": 1.0}] * 4
    ends = 0
    for _ in range(40):
        action = actions(venv)
        shown, rewards, dones, infos = venv.step(action)
        other_shown, other_rewards, other_dones, other_infos = other.step(action)
        np.testing.assert_array_equal(as_vector(shown), as_vector(other_shown))
        np.testing.assert_array_equal(rewards, other_rewards)
        np.testing.assert_array_equal(dones, other_dones)
        assert (rewards.dtype, dones.dtype) == (np.float32, np.bool_)
        for info, other_info in zip(infos, other_infos, strict=True):
            assert ("terminal_observation" in info) == ("terminal_observation" in other_info)
            if "terminal_observation" in info:
                ends += 1
                last, other_last = info.pop("terminal_observation"), other_info.pop("terminal_observation")
                assert type(last) is type(other_last)
                np.testing.assert_array_equal(as_vector(last), as_vector(other_last))
            assert info.pop("discount") == pytest.approx(other_info.pop("discount"), rel=1e-15)
            assert info == other_info
        assert venv.reset_infos == [{"dt": 0.0, "weight": 1.0}] * 4
    assert ends > 20


def test_what_is_in_the_infos() -> None:
    venv = SB3VecEnv(tickers(2))
    venv.reset()
    for _ in range(3):
        _, _, dones, infos = venv.step(actions(venv))
    assert dones.tolist() == [True, False]
    assert set(infos[1]) == {"dt", "weight", "TimeLimit.truncated"}
    assert {type(value) for value in infos[1].values()} == {float, bool}
    assert infos[0]["reason"] == "cut"
    assert infos[0]["TimeLimit.truncated"] is True
    assert infos[0]["summary"] == {"steps": 3, "cost": {"mean": 1.5}}
    assert infos[0]["dt"] > 0
    assert infos[0]["terminal_observation"].tolist() == [0.0, 0.0, 3.0]


def test_rewards_and_infos_are_the_caller_s() -> None:
    venv = SB3VecEnv(tickers(2))
    venv.reset()
    first = venv.step(actions(venv))
    kept = first[1].copy()
    first[1][:] = 7.0
    first[3][0]["mine"] = True
    second = venv.step(actions(venv))
    assert kept is not second[1]
    assert "mine" not in second[3][0]
    assert 7.0 not in second[1]


def test_infos_of_an_environment_without_any() -> None:
    venv = SB3VecEnv(tickers(2, timed=False, reset_dt=False))
    venv.reset()
    assert venv.reset_infos == [{}, {}]
    for _ in range(3):
        infos = venv.step(actions(venv))[3]
    assert set(infos[0]) == {"TimeLimit.truncated", "terminal_observation", "reason", "summary"}
    assert infos[1] == {"TimeLimit.truncated": False}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_refuses_other_modes(mode: AutoresetMode) -> None:
    with pytest.raises(ValueError, match=r"autoreset_mode of venv must be AutoresetMode.SAME_STEP.*make_vec.*got <"):
        SB3VecEnv(tickers(autoreset_mode=mode))


# ---- seeds and options -------------------------------------------------------------------------------


def test_seeds_and_options_are_for_one_reset() -> None:
    inner = tickers(3)
    venv = SB3VecEnv(inner)
    assert venv.seed(11) == [11, 12, 13]
    venv.set_options({"start": 1})
    venv.reset()
    venv.reset()
    assert [env.seeds for env in inner.envs] == [[11, None], [12, None], [13, None]]
    assert [env.options for env in inner.envs] == [[{"start": 1}, None]] * 3


def test_refuses_options_that_differ() -> None:
    with pytest.raises(ValueError, match="options must be one mapping for all environments"):
        SB3VecEnv(tickers(2)).set_options([{"start": 1}, {"start": 2}])


# ---- attributes --------------------------------------------------------------------------------------


def test_attributes_are_those_of_the_vector_environment() -> None:
    inner = tickers(3)
    venv = SB3VecEnv(RecordEpisodeStatistics(TimeDiscountVector(inner, BETA)))
    assert venv.get_attr("beta") == [BETA] * 3
    assert venv.get_attr("envs", [0, 2]) == [inner.envs] * 2
    assert venv.has_attr("episode_count")
    assert not venv.has_attr("nothing_of_the_kind")
    venv.set_attr("beta", 2 * BETA)
    venv.set_attr("note", "new")
    assert venv.get_attr("beta", 1) == [2 * BETA]
    assert inner.note == "new"
    with pytest.raises(ValueError, match="indices must be None: the environments share"):
        venv.set_attr("beta", 1.0, indices=0)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        venv.get_attr("nothing_of_the_kind")


def test_methods_and_wrappers() -> None:
    venv = SB3VecEnv(RecordEpisodeStatistics(tickers(3)))
    assert venv.env_is_wrapped(RecordEpisodeStatistics) == [True] * 3
    assert venv.env_is_wrapped(Monitor, indices=[1]) == [False]
    assert venv.env_method("get_attr", "index") == [0, 1, 2]
    assert venv.env_method("get_attr", "index", indices=[2]) == [2]
    assert venv.env_method("__repr__", indices=0) == [repr(venv.venv)]


def test_render() -> None:
    venv = SB3VecEnv(tickers(4, render_mode="rgb_array"))
    venv.reset()
    assert [image[0, 0, 0] for image in venv.get_images()] == [0, 10, 20, 30]
    assert venv.render().shape == (8, 10, 3)
    assert venv.metadata["render_fps"] == 7
    assert SB3VecEnv(tickers(2)).get_images() == [None, None]


def test_close() -> None:
    inner = tickers(2)
    SB3VecEnv(inner).close()
    assert inner.closed


# ---- in use ------------------------------------------------------------------------------------------


def test_make_sb3_env(registered: str) -> None:
    venv = make_sb3_env(registered, 5, beta=BETA, form="dict")
    assert venv.num_envs == 5
    assert venv.get_attr("beta", 0) == [BETA]
    assert venv.spec.id == registered
    venv.reset()
    assert "discount" in venv.step(actions(venv))[3][0]
    plain = make_sb3_env(registered, num_envs=2)
    plain.reset()
    assert "discount" not in plain.step(actions(plain))[3][0]


def test_vec_monitor_counts_episodes() -> None:
    venv = VecMonitor(SB3VecEnv(tickers(3)))
    venv.reset()
    lengths, returns = [], []
    sums = np.zeros(3)
    for _ in range(12):
        _, rewards, dones, infos = venv.step(actions(venv))
        sums += rewards
        for i in np.flatnonzero(dones):
            lengths.append((infos[i]["episode"]["l"], infos[i]["summary"]["steps"]))
            returns.append((infos[i]["episode"]["r"], sums[i]))
            sums[i] = 0.0
    assert len(lengths) >= 6
    assert all(counted == made for counted, made in lengths)
    np.testing.assert_allclose(*np.array(returns).T, rtol=1e-5)


@pytest.mark.parametrize("form", ["vector", "dict"])
def test_vec_normalize_normalizes_last_observations_too(form: str) -> None:
    venv = VecNormalize(SB3VecEnv(tickers(3, form=form)))
    venv.reset()
    ends = 0
    for _ in range(12):
        _, rewards, dones, infos = venv.step(actions(venv))
        assert rewards.dtype == np.float32
        for i in np.flatnonzero(dones):
            last = as_vector(venv.unnormalize_obs(infos[i]["terminal_observation"]))
            assert last[2] == pytest.approx(infos[i]["summary"]["steps"], abs=1e-3)
            ends += 1
    assert ends >= 6


@pytest.mark.parametrize(("form", "policy"), [("vector", "MlpPolicy"), ("dict", "MultiInputPolicy")])
def test_ppo_trains_and_is_evaluated(form: str, policy: str) -> None:
    venv = VecNormalize(VecMonitor(SB3VecEnv(tickers(8, form=form))))
    model = PPO(policy, venv, n_steps=16, batch_size=32, n_epochs=2, seed=1, device="cpu").learn(256)
    assert model.num_timesteps == 256
    assert len(model.ep_info_buffer) > 20
    mean, spread = evaluate_policy(model, VecMonitor(SB3VecEnv(tickers(2, form=form))), n_eval_episodes=4)
    assert np.isfinite([mean, spread]).all()
