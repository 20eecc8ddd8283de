"""TorchRL takes the environment and the vector environment, and its PPO loss trains on what it collects."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

pytest.importorskip("torchrl", reason="needs TorchRL: pip install torchrl")

import gymnasium as gym
import torch
from gymnasium.vector import AutoresetMode, VectorWrapper
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.data import Unbounded
from torchrl.envs import CatTensors, DoubleToFloat, GymEnv, GymWrapper, TransformedEnv
from torchrl.envs.gym_like import default_info_dict_reader
from torchrl.envs.utils import check_env_specs
from torchrl.modules import NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

with warnings.catch_warnings():
    # TorchRL makes at import what it has deprecated itself.
    warnings.filterwarnings("ignore", "Creating .*WeightUpdater which", DeprecationWarning)
    from torchrl.collectors import Collector

from tests.tooling.watch import ID, Watch, assert_learned, assert_same_episodes, parameters_of

NUM_ENVS, STEPS = 4, 128
ANCHOR: dict[str, Any] = {"action": "anchor", "observation": "compact", "jobs": 20}


class WithoutCost(VectorWrapper):  # type: ignore[type-arg]
    """Leaves the costs out of the infos: in the mode SAME_STEP TorchRL cannot read infos that are mappings."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.autoreset_mode = env.autoreset_mode  # TorchRL looks for it, and wrappers do not hand it on.

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(**arguments)
        return observations, without_cost(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        *outcome, infos = self.env.step(actions)
        if "final_info" in infos:
            infos = infos | {"final_info": without_cost(infos["final_info"])}
        return *outcome, without_cost(infos)  # type: ignore[return-value]


def without_cost(infos: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in infos.items() if name not in ("cost", "_cost")}


def native(mode: AutoresetMode, **arguments: Any) -> tuple[Any, Watch]:
    envs = gym.make_vec(ID, num_envs=NUM_ENVS, autoreset_mode=mode, **arguments)
    wrapped = WithoutCost(envs) if mode is AutoresetMode.SAME_STEP else envs
    return GymWrapper(wrapped, categorical_action_encoding=True), Watch(envs)


def episodes(data: Any) -> tuple[list[int], list[float]]:
    """Lengths and returns of the finished episodes in a batch of shape (environments, time)."""
    lengths, returns = [], []
    done, rewards = data["next", "done"].squeeze(-1), data["next", "reward"].squeeze(-1)
    for ends, paid in zip(done, rewards, strict=True):
        first = 0
        for last in ends.nonzero().flatten().tolist():
            lengths.append(last + 1 - first)
            returns.append(float(paid[first : last + 1].double().sum()))
            first = last + 1
    return lengths, returns


def learn(env: Any, frames: int) -> tuple[Any, list[Any]]:
    """Collect two batches with a Collector and take PPO's gradient steps on them; return all data."""
    columns = env.observation_spec["observation"].shape[-1]
    space = env.action_spec_unbatched.space
    network = nn.Sequential(nn.Linear(columns, 32), nn.Tanh(), nn.Linear(32, 2), NormalParamExtractor())
    actor = ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["loc", "scale"]),
        spec=env.action_spec_unbatched,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": space.low, "high": space.high},
        return_log_prob=True,
    )
    critic = ValueOperator(nn.Sequential(nn.Linear(columns, 32), nn.Tanh(), nn.Linear(32, 1)), in_keys=["observation"])
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    loss_module = ClipPPOLoss(actor, critic)
    optimiser = torch.optim.Adam(loss_module.parameters(), 1e-3)
    before = parameters_of(actor)
    seen = []
    collector = Collector(
        env, actor, frames_per_batch=frames, total_frames=2 * frames, auto_register_policy_transforms=True
    )
    for data in collector:
        seen.append(data.clone())
        advantage(data)
        assert torch.isfinite(data["advantage"]).all()
        losses = loss_module(data.reshape(-1))
        optimiser.zero_grad()
        (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
        optimiser.step()
    collector.shutdown()
    assert_learned(before, parameters_of(actor))
    return actor, seen


def test_single_environment() -> None:
    env = GymEnv(ID, **ANCHOR)
    check_env_specs(env)
    watch = Watch(env._env.unwrapped)
    _, seen = learn(env, STEPS)
    assert watch.steps == 2 * STEPS
    assert 0 <= watch.lowest < watch.highest <= 1
    data = torch.cat(seen).unsqueeze(0)
    assert_same_episodes(watch, *episodes(data))


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_vector_environment(mode: AutoresetMode) -> None:
    env, watch = native(mode, **ANCHOR)
    assert env.batch_size == torch.Size([NUM_ENVS])
    _, seen = learn(env, NUM_ENVS * STEPS)
    assert watch.steps == 2 * NUM_ENVS * STEPS
    assert 0 <= watch.lowest < watch.highest <= 1
    data = torch.cat(seen, 1)
    assert_same_episodes(watch, *episodes(data))
    # The last observation of an episode is its own and not the next one's: its first number is ln(1 + jobs present),
    # and the first observation of an episode is of the one job that has arrived.
    ends = data["next", "done"].squeeze(-1)
    last = data["next", "observation"][ends]
    assert torch.isfinite(last).all()
    starts = data["observation"][:, 1:][ends[:, :-1]]
    torch.testing.assert_close(starts[:, 0], torch.full_like(starts[:, 0], 2.0).log())
    assert not torch.equal(last[: len(starts)], starts)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_both_modes_and_the_single_environment_agree(mode: AutoresetMode) -> None:
    env, _ = native(mode, **ANCHOR)
    env.set_seed(3)
    policy = TensorDictModule(lambda shown: 0.5 * torch.ones(*shown.shape[:-1], 1), ["observation"], ["action"])
    data = env.rollout(60, policy, auto_reset=True, break_when_any_done=False)
    single = gym.make(ID, **ANCHOR)
    for i in range(NUM_ENVS):
        single.reset(seed=3 + i)
        observation, _ = single.reset()  # set_seed has reset already, so this is the second time
        assert (data["observation"][i, 0].numpy() == observation).all()
        for step in range(60):
            observation, reward, _, truncated, _ = single.step([0.5])
            assert data["next", "reward"][i, step, 0] == pytest.approx(reward, rel=1e-6)
            assert (data["next", "observation"][i, step].numpy() == observation).all()
            assert bool(data["next", "truncated"][i, step]) is truncated
            if truncated:
                observation, _ = single.reset()


def test_next_step_is_refused() -> None:
    with pytest.raises(RuntimeError, match="auto-reset mode must be one of SAME_STEP or DISABLED"):
        native(AutoresetMode.NEXT_STEP, **ANCHOR)


def test_a_wrapper_does_not_hand_the_mode_on() -> None:
    envs = gym.make_vec(ID, num_envs=NUM_ENVS, autoreset_mode=AutoresetMode.DISABLED, **ANCHOR)
    with pytest.raises(AttributeError, match="autoreset_mode"):
        GymWrapper(VectorWrapper(envs)).rollout(2)


def test_costs_are_too_much_for_same_step() -> None:
    envs = gym.make_vec(ID, num_envs=NUM_ENVS, autoreset_mode=AutoresetMode.SAME_STEP, **ANCHOR)
    with pytest.raises(RuntimeError, match="expand_specs"):
        GymWrapper(envs)


def test_time_of_a_step() -> None:
    env, _ = native(AutoresetMode.DISABLED, **ANCHOR)
    reader = default_info_dict_reader(["dt"], spec=[Unbounded(shape=(NUM_ENVS,), dtype=torch.float64)])
    times = env.set_info_dict_reader(reader).rollout(10)["next", "dt"]
    assert times.shape == (NUM_ENVS, 10)
    assert (times > 0).all()
    assert len(times.unique()) > 10


def test_specs_of_the_vector_environment() -> None:
    env, _ = native(AutoresetMode.DISABLED, **ANCHOR)
    check_env_specs(env)


def test_dict_observations_and_rules() -> None:
    env, watch = native(AutoresetMode.DISABLED, action="rule", rules=["srpt", "fcfs"], observation="dict", jobs=20)
    names = sorted(env.observation_spec.keys())
    flat = TransformedEnv(env, DoubleToFloat()).append_transform(CatTensors(names, "observation", del_keys=False))
    data = flat.rollout(STEPS, break_when_any_done=False)
    assert data["observation"].dtype == torch.float32
    assert data["observation"].shape[:2] == (NUM_ENVS, STEPS)
    assert data["remaining"].shape[2] > 10
    assert watch.steps == NUM_ENVS * STEPS
    assert (watch.lowest, watch.highest) == (0, 1)
    assert_same_episodes(watch, *episodes(data))
