"""The checkers of environments pass what is right, and find each fault of a broken environment."""

import json
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from broken_single_envs import BROKEN_SINGLES
from broken_vector_envs import BROKEN_VECTORS, DISABLED, NEXT_STEP, SAME_STEP, Float32Rewards
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toy_envs import LIMIT, Toy, ToyVector

from queue_env.checks import EnvCheckError, check_env, check_vector_env

CARTPOLE = "CartPole-v1"


def make_cartpole() -> gym.Env[Any, Any]:
    return gym.make(CARTPOLE)


def make_native_cartpole(num_envs: int, autoreset_mode: AutoresetMode) -> CartPoleVectorEnv:
    return CartPoleVectorEnv(num_envs)


# ---- vector environments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_right_vector_env(num_envs: int, mode: AutoresetMode) -> None:
    check_vector_env(ToyVector, Toy, num_envs=num_envs, modes=[mode], seed=num_envs)


@pytest.mark.parametrize(
    ("broken", "mode", "message"), BROKEN_VECTORS, ids=[case[0].__name__ for case in BROKEN_VECTORS]
)
def test_broken_vector_env(broken: type[ToyVector], mode: AutoresetMode, message: str) -> None:
    with pytest.raises(EnvCheckError, match=message):
        check_vector_env(broken, Toy, modes=[mode])


def test_own_mode() -> None:
    made = []

    def make(num_envs: int, autoreset_mode: AutoresetMode) -> ToyVector:
        made.append(ToyVector(num_envs, SAME_STEP))
        return made[-1]

    check_vector_env(make, Toy)
    assert made
    assert all(env.closed for env in made)


class Nested(Toy):
    """Observations in a Dict of Tuples, actions in a Dict."""

    def __init__(self) -> None:
        super().__init__()
        self.toy_space = self.observation_space
        self.observation_space: Any = spaces.Dict({"both": spaces.Tuple((self.toy_space, spaces.Discrete(LIMIT + 1)))})
        self.action_space = spaces.Dict({"push": self.action_space, "idle": spaces.Box(0, 1, (2,), np.float64)})

    def observe(self) -> Any:
        return {"both": (super().observe(), np.int64(self.time))}

    def step(self, action: Any) -> Any:
        return super().step(action["push"])


@pytest.mark.parametrize("single", [Toy, Nested])
@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_sync_vector_env(single: type[Toy], mode: AutoresetMode) -> None:
    check_vector_env(lambda n, mode: SyncVectorEnv([single] * n, autoreset_mode=mode), single, modes=[mode])


def test_nested_observations() -> None:
    class Late(Nested):
        def observe(self) -> Any:
            return {"both": (Toy.observe(self), np.int64(min(self.time, 3)))}

    with pytest.raises(EnvCheckError, match=r"step 4 after reset\(seed=0\), sub-env 0: .* is 3, expected 4"):
        check_vector_env(lambda n, _: SyncVectorEnv([Late] * n), Nested, skip=["copies"])


def test_sync_vector_env_pops_the_mask() -> None:
    with pytest.raises(EnvCheckError, match="the caller's options lacks 'reset_mask'"):
        check_vector_env(lambda n, mode: SyncVectorEnv([Toy] * n, autoreset_mode=mode), Toy, modes=[DISABLED])


def test_sync_vector_env_without_copies_reuses_its_buffer() -> None:
    with pytest.raises(EnvCheckError, match="observations shares memory"):
        check_vector_env(lambda n, _: SyncVectorEnv([Toy] * n, copy=False), Toy)


def test_native_cartpole() -> None:
    # Its one generator is that of the single environment if there is one sub-environment. Rewards are float32.
    skip = ["list seeds", "close"]
    check_vector_env(make_native_cartpole, make_cartpole, num_envs=1, exact=False, skip=skip)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 3}, r"reset\(seed=0\), sub-env 0: observations\[1\] is .* \(its seed is 0\)"),
        ({"num_envs": 1}, r"reset\(seed=\[7\]\): raises Error"),
        ({"num_envs": 1, "skip": ["list seeds"]}, r"close\(\): closed is False, expected True"),
    ],
)
def test_where_native_cartpole_differs(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EnvCheckError, match=message):
        check_vector_env(make_native_cartpole, make_cartpole, exact=False, **arguments)


def test_native_cartpole_is_not_exact() -> None:
    with pytest.raises(EnvCheckError, match="rewards has dtype float32, expected float64"):
        check_vector_env(make_native_cartpole, make_cartpole, num_envs=1)


def test_tolerance_of_floats() -> None:
    check_vector_env(Float32Rewards, Toy, modes=AutoresetMode, exact=False)


def test_options_reach_every_reset() -> None:
    check_vector_env(ToyVector, Toy, modes=AutoresetMode, options={"shift": 0.5})

    class Forgets(ToyVector):
        def begin(self, mask: Any, infos: dict[str, Any], shift: float = 0.0) -> None:
            super().begin(mask, infos, shift if mask.all() else 0.0)

    check_vector_env(Forgets, Toy, options={"shift": 0.5}, skip=["copies"])
    with pytest.raises(EnvCheckError, match=r"\(reset_mask is True\)"):
        check_vector_env(Forgets, Toy, modes=[DISABLED], options={"shift": 0.5}, skip=["copies"])


def test_parts_left_out() -> None:
    class NoListNoCopy(ToyVector):
        def read_seeds(self, seed: Any) -> list[int | None]:
            assert not isinstance(seed, list)
            return super().read_seeds(seed)

        def __reduce_ex__(self, protocol: Any) -> Any:
            raise TypeError("cannot be copied")

    with pytest.raises(EnvCheckError, match=r"making a deepcopy after step .*: raises TypeError: cannot be copied"):
        check_vector_env(NoListNoCopy, Toy)
    with pytest.raises(EnvCheckError, match=r"reset\(seed=\[21, 14, 7\]\): raises AssertionError"):
        check_vector_env(NoListNoCopy, Toy, skip=["copies"])
    check_vector_env(NoListNoCopy, Toy, skip=["copies", "list seeds"])


def test_single_env_that_does_not_repeat_itself() -> None:
    class Random(Toy):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            return super().reset(options=options)

    with pytest.raises(EnvCheckError, match=r"^make_single: two SyncVectorEnv of it are not the same: .*sub-env 0"):
        check_vector_env(ToyVector, Random)


def test_vector_env_that_is_none() -> None:
    with pytest.raises(EnvCheckError, match=r"make_vector\(3, AutoresetMode.NEXT_STEP\): is .*, no gymnasium.vector"):
        check_vector_env(lambda n, mode: Toy(), Toy)  # type: ignore[arg-type, return-value]
    with pytest.raises(EnvCheckError, match=r"make_vector\(3, AutoresetMode.NEXT_STEP\): raises ZeroDivisionError"):
        check_vector_env(lambda n, mode: 1 / 0, Toy)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs must be >= 1, got 0"),
        ({"steps": 0}, "steps must be >= 1, got 0"),
        ({"steps": 1}, "steps must be so large that an episode ends in them, got 1"),
        ({"seed": -1}, "seed must be >= 0, got -1"),
        ({"modes": []}, r"modes must be None, or at least one AutoresetMode, got \[\]"),
        ({"modes": ["NextStep"]}, "modes must be None, or at least one AutoresetMode"),
        ({"skip": "copies"}, "skip must be a collection of some of 'copies', 'list seeds', 'close', got"),
        ({"skip": ["pickle"]}, "skip must be a collection of some of"),
    ],
)
def test_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_vector_env(ToyVector, Toy, **arguments)


# ---- single environments ----------------------------------------------------------------------------------


@pytest.fixture
def toy_id() -> Any:
    name = "checks/Toy-v0"
    gym.register(name, entry_point="toy_envs:Toy", max_episode_steps=5)
    yield name
    del gym.registry[name]


def test_right_env(toy_id: str) -> None:
    check_env(Toy())
    check_env(gym.make(toy_id))
    check_env(gym.make(toy_id).unwrapped)


def test_cartpole() -> None:
    env = make_cartpole()
    check_env(env, sb3=False, skip=["render"], allow=["infinity"])
    env.reset()  # still open


@pytest.mark.parametrize(("broken", "message"), BROKEN_SINGLES, ids=[case[0].__name__ for case in BROKEN_SINGLES])
def test_broken_env(broken: type[Toy], message: str) -> None:
    with pytest.raises(EnvCheckError, match=message):
        check_env(broken(), sb3=False)


def test_allowed_warnings() -> None:
    env = gym.make(CARTPOLE)
    with pytest.raises(EnvCheckError, match=r"A Box observation space maximum value is infinity"):
        check_env(env, sb3=False, allow=["-infinity"])


def test_spec_that_json_cannot_hold(toy_id: str) -> None:
    env = gym.make(toy_id)
    assert env.spec is not None
    env.spec.kwargs["law"] = object()
    with pytest.raises(EnvCheckError, match=r"^made from its spec by way of JSON: raises TypeError: .*JSON"):
        check_env(env, sb3=False)
    check_env(env, sb3=False, skip=["spec"])


def test_spec_that_loses_arguments(toy_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = gym.make(toy_id)
    assert env.spec is not None
    short = json.dumps(json.loads(env.spec.to_json()) | {"max_episode_steps": 1})
    monkeypatch.setattr(type(env.spec), "to_json", lambda spec: short)
    with pytest.raises(EnvCheckError, match=r"^made from .*, step 1 after .*: truncated is True, expected False"):
        check_env(env, sb3=False)


class WideActions(Toy):
    """Right for Gymnasium; Stable-Baselines3 wants actions in [-1, 1]."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(0, 1, (1,), np.float32)

    def step(self, action: Any) -> Any:
        return super().step(action[0] > 0.5)


def test_sb3() -> None:
    pytest.importorskip("stable_baselines3")
    for sb3 in (None, True):
        with pytest.raises(EnvCheckError, match=r"^Stable-Baselines3's check_env: raises UserWarning: .*symmetric"):
            check_env(WideActions(), sb3=sb3)
    check_env(WideActions(), sb3=False)
    check_env(WideActions(), allow=["symmetric"])


def test_without_sb3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queue_env.checks.single.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    check_env(WideActions())
    with pytest.raises(ValueError, match=r"sb3 must be None or False where .* is not installed, got True"):
        check_env(WideActions(), sb3=True)


def test_arguments_of_check_env() -> None:
    with pytest.raises(ValueError, match="skip must be a collection of some of 'render', 'copies', 'spec'"):
        check_env(Toy(), skip=["sb3"])
    with pytest.raises(ValueError, match="steps must be >= 1, got 0"):
        check_env(Toy(), steps=0)
    with pytest.raises(EnvCheckError, match=r"is no gymnasium.Env"):
        check_env(ToyVector(2, NEXT_STEP))  # type: ignore[arg-type]
