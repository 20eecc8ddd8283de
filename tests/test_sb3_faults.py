"""What the adapter for Stable-Baselines3 hands on of the infos, and what it and the buffers refuse."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")

from gymnasium.vector import AutoresetMode
from stable_baselines3 import PPO, SAC

from queue_env.sb3 import (
    SB3VecEnv,
    TimeAwareDictReplayBuffer,
    TimeAwareReplayBuffer,
    TimeAwareRolloutBuffer,
    VecDiscount,
    make_sb3_env,
)
from tests.tickers import tickers

ANCHOR: dict[str, Any] = {"action": "anchor", "symmetric_actions": True}
ALWAYS = {"TimeLimit.truncated", "dt"}
COSTS: dict[str, Any] = {"reward": {"mean": 1.0, "moment(2)": 0.1}, "jobs": 3}


def steps(env: Any, count: int) -> list[tuple[Any, ...]]:
    env.seed(0)
    env.reset()
    shape = (env.num_envs, *env.action_space.shape)
    return [env.step(np.zeros(shape, np.float32)) for _ in range(count)]


# ---- infos -----------------------------------------------------------------------------------------------


def test_infos_that_are_asked_for_are_handed_on() -> None:
    env = make_sb3_env(num_envs=3, infos=["cost", "completions", "dt", "nothing"], **ANCHOR, **COSTS)
    plain = make_sb3_env(num_envs=3, **ANCHOR, **COSTS)
    ends = 0
    for (*_, infos), (*_, others) in zip(steps(env, 20), steps(plain, 20), strict=True):
        for info, other in zip(infos, others, strict=True):
            cost = info.pop("cost")
            assert list(cost) == ["mean", "moment(2)"]
            assert {type(value) for value in cost.values()} == {float}
            assert type(info.pop("completions")) is int
            ends += "summary" in info
            info.pop("terminal_observation", None), other.pop("terminal_observation", None)
            assert info == other
    assert ends > 3
    assert set(env.reset_infos[0]) == {"dt", "cost", "completions"}
    assert set(plain.reset_infos[0]) == {"dt"}


def test_costs_are_those_of_the_step_at_an_end_too() -> None:
    env = make_sb3_env(num_envs=3, infos=["cost"], **ANCHOR, **COSTS)
    ends = 0
    for _, rewards, dones, infos in steps(env, 30):
        for paid, done, info in zip(rewards, dones, infos, strict=True):
            assert paid == pytest.approx(-info["cost"]["mean"] - 0.1 * info["cost"]["moment(2)"], rel=1e-6)
            ends += done
    assert ends > 3


def test_allocation_is_handed_on_where_it_is_reported() -> None:
    env = make_sb3_env(num_envs=2, allocation_in_info=True, jobs=3, **ANCHOR)
    made = steps(env, 10)
    rates = [info["allocation"] for *_, infos in made for info in infos]
    assert any("summary" in info for *_, infos in made for info in infos)
    assert all(rate.shape == (16,) and rate.sum() <= 2 + 1e-9 for rate in rates)
    assert set(steps(make_sb3_env(num_envs=2, **ANCHOR), 1)[0][3][0]) == ALWAYS


def test_infos_with_masks() -> None:
    env = SB3VecEnv(tickers(3), infos=("reason",))
    for *_, dones, infos in steps(env, 8):
        assert [info.get("reason") is not None for info in infos] == dones.tolist()


@pytest.mark.parametrize("infos", ["cost", [1]])
def test_infos_are_keys(infos: Any) -> None:
    with pytest.raises(ValueError, match="SB3VecEnv: infos must be a list of keys"):
        SB3VecEnv(tickers(2), infos=infos)
    with pytest.raises(ValueError, match="make_sb3_env: infos must be a list of keys"):
        make_sb3_env(infos=infos)


# ---- what is refused -------------------------------------------------------------------------------------


def test_the_autoreset_mode_is_given() -> None:
    with pytest.raises(ValueError, match="autoreset_mode must be left out: Stable-Baselines3 needs"):
        make_sb3_env(autoreset_mode=AutoresetMode.NEXT_STEP)


def replay(env: Any, buffer: Any = TimeAwareReplayBuffer, policy: str = "MlpPolicy", **arguments: Any) -> SAC:
    return SAC(policy, env, replay_buffer_class=buffer, buffer_size=100, device="cpu", **arguments)


def test_two_discount_rates_are_refused() -> None:
    def env() -> SB3VecEnv:
        return make_sb3_env(num_envs=2, beta=0.01, **ANCHOR)

    with pytest.raises(ValueError, match=r"TimeAwareReplayBuffer: beta must be left out, or that of the .*, got 0\.02"):
        replay(env(), replay_buffer_kwargs={"beta": 0.02}).learn(10)
    replay(env(), replay_buffer_kwargs={"beta": 0.01}).learn(10)
    given: dict[str, Any] = {"gamma": 1.0, "rollout_buffer_class": TimeAwareRolloutBuffer, "n_steps": 8}
    with pytest.raises(ValueError, match=r"VecDiscount: beta must be left out, or that of the environment.* got 0\.02"):
        PPO("MlpPolicy", VecDiscount(env(), beta=0.02), batch_size=16, device="cpu", **given).learn(16)
    PPO("MlpPolicy", VecDiscount(env(), beta=0.01), batch_size=16, device="cpu", **given).learn(16)


@pytest.mark.filterwarnings("ignore:.*n_steps.*is ignored")
@pytest.mark.parametrize(
    "given", [{"n_steps": 3}, {"replay_buffer_kwargs": {"n_steps": 3, "gamma": 0.99}}, {"n_steps": 3, "policy": "dict"}]
)
def test_returns_of_several_steps_are_refused(given: dict[str, Any]) -> None:
    arguments = dict(given)
    form = arguments.pop("policy", "vector")
    buffer, policy = (
        (TimeAwareReplayBuffer, "MlpPolicy") if form == "vector" else (TimeAwareDictReplayBuffer, "MultiInputPolicy")
    )
    with pytest.raises(ValueError, match=r"n_steps must be 1: n-step returns are not supported .*, got 3"):
        replay(SB3VecEnv(tickers(2, form=form)), buffer, policy, **arguments)


def test_discounts_are_put_on_vec_envs() -> None:
    single, vector = gym.make("queue_env/MGn-v0"), gym.make_vec("queue_env/MGn-v0", num_envs=2)
    for env in (single, vector):
        with pytest.raises(
            ValueError, match="VecDiscount: venv must be a VecEnv of Stable-Baselines3, as make_sb3_env"
        ):
            VecDiscount(env)  # type: ignore[arg-type]
