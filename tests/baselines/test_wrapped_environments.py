"""Agents find the queue inside wrappers, and refuse wrappers that change what it shows or takes."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers import vector as vector_wrappers

from baselines import make_agent
from tests.baselines.crowds import StubEnv, configured, stub


class StubVectorEnv(VectorEnv[Any, Any, Any]):
    """All of a vector environment that an agent asks for."""

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, **arguments: Any) -> None:
        self.num_envs = 3
        self.config = configured(**arguments)
        self.layout, self.actions = self.config.layout, self.config.actions
        self.single_observation_space, self.single_action_space = self.layout.space(), self.actions.space()
        self.observation_space = batch_space(self.single_observation_space, 3)
        self.action_space = batch_space(self.single_action_space, 3)


def assert_acts(env: Any) -> None:
    """SRPT serves the first two rows."""
    agent = make_agent("srpt", env)
    shown = np.zeros((4, agent.layout.entries), np.float32)
    assert agent.predict(shown)[0].tolist() == np.zeros((4, 16)).tolist()


def assert_refused(env: Any, wrapper: str, what: str) -> None:
    with pytest.raises(ValueError, match=f"agent: env must be .* but {wrapper} changes the {what} space or its values"):
        make_agent("srpt", env)


def test_wrappers_that_change_nothing() -> None:
    env = stub(observation="flat")
    assert_acts(env)
    assert_acts(wrappers.TimeLimit(wrappers.RecordEpisodeStatistics(wrappers.OrderEnforcing(env)), 10))
    assert_acts(wrappers.TransformReward(env, float))


def test_vector_wrappers_that_change_nothing() -> None:
    assert_acts(StubVectorEnv(observation="flat"))
    assert_acts(vector_wrappers.RecordEpisodeStatistics(VectorWrapper(StubVectorEnv(observation="flat"))))
    assert_acts(SyncVectorEnv([lambda: wrappers.TimeLimit(stub(observation="flat"), 10)] * 2))


def test_wrappers_that_change_observations() -> None:
    env = stub(observation="flat")
    assert_refused(wrappers.NormalizeObservation(env), "NormalizeObservation", "observation")
    assert_refused(wrappers.TimeAwareObservation(wrappers.TimeLimit(env, 9)), "TimeAwareObservation", "observation")
    assert_refused(wrappers.FlattenObservation(stub(observation="dict")), "FlattenObservation", "observation")
    vector = vector_wrappers.NormalizeObservation(StubVectorEnv(observation="flat"))
    assert_refused(VectorWrapper(vector), "NormalizeObservation", "observation")
    assert_refused(SyncVectorEnv([lambda: wrappers.NormalizeObservation(env)]), "NormalizeObservation", "observation")


def test_wrappers_that_change_actions() -> None:
    low = np.float32(-1)
    assert_refused(wrappers.RescaleAction(stub(), low, np.float32(1)), "RescaleAction", "action")
    assert_refused(wrappers.ClipAction(stub()), "ClipAction", "action")
    assert_refused(vector_wrappers.ClipAction(StubVectorEnv()), "ClipAction", "action")


def test_there_must_be_a_queue_inside() -> None:
    for env in (gymnasium.make("CartPole-v1"), "queue_env/MGn-v0", None):
        with pytest.raises(ValueError, match="agent: env must be a QueueEnv or QueueVectorEnv in this process"):
            make_agent("srpt", env)


def test_environments_of_stable_baselines() -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")

    class Adapter(sb3.base_vec_env.VecEnv):  # type: ignore[misc]
        """A view of a vector environment of Gymnasium."""

        def __init__(self, venv: StubVectorEnv) -> None:
            self.venv = venv
            super().__init__(3, venv.single_observation_space, venv.single_action_space)

        def get_attr(self, name: str, indices: Any = None) -> list[Any]:
            return [None] * 3

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * 3

        reset = step_async = step_wait = close = set_attr = env_method = None

    env = Adapter(StubVectorEnv(observation="flat"))
    assert_acts(env)
    assert_acts(sb3.VecMonitor(env))
    assert_acts(sb3.VecNormalize(sb3.VecMonitor(env), norm_obs=False))
    assert_acts(sb3.DummyVecEnv([lambda: StubEnv(configured(observation="flat"))] * 2))
    assert_refused(sb3.VecMonitor(sb3.VecNormalize(env)), "VecNormalize", "observation")
    assert_refused(sb3.VecFrameStack(env, 2), "VecFrameStack", "observation")
