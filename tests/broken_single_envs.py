"""`Toy` with one fault each, and what the checker must say of it."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from toy_envs import Array, Infos, Toy


class NotDeterministic(Toy):
    def step(self, action: Any) -> Any:
        observation, reward, *others, info = super().step(action)
        # Late, since Gymnasium's checker looks at one step only.
        info["parts"]["luck"] = np_random()[0].random() if self.time > 2 else 0.0
        return observation, reward, *others, info


class KeepsState(Toy):
    """The second episode after a seed depends on what was before it."""

    episodes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, Infos]:
        self.episodes += 1
        _, info = super().reset(seed=seed, options=options)
        return self.observe(), info | {"episodes": self.episodes}


class NumpyFlags(Toy):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, np.bool_(terminated), truncated, info


class OutOfSpace(Toy):
    def observe(self) -> Array:
        return super().observe() + np.float32(25 if self.time == 3 else 0)


class WrongShape(Toy):
    def observe(self) -> Array:
        return super().observe()[:1]


class WordForReward(Toy):
    def step(self, action: Any) -> Any:
        observation, reward, *others = super().step(action)
        return observation, str(reward), *others


class NoInfo(Toy):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed, options=options)[0], None


class ForgetsTime(Toy):
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "time": 0}


class PickleForgetsTime(Toy):
    def __deepcopy__(self, memo: Any) -> gym.Env[Array, Any]:
        copy = type(self)()
        copy.__dict__.update(self.__dict__)
        copy.np_random = np_random(0)[0]
        copy.np_random.bit_generator.state = self.np_random.bit_generator.state
        return copy

    __getstate__ = ForgetsTime.__getstate__


class SharesGenerator(Toy):
    def __deepcopy__(self, memo: Any) -> gym.Env[Array, Any]:
        copy = type(self)()
        copy.__dict__.update(self.__dict__)
        return copy


class NoPickleSingle(Toy):
    def __init__(self) -> None:
        super().__init__()
        self.spare = lambda: None


class OneBuffer(Toy):
    def observe(self) -> Array:
        self.__dict__.setdefault("buffer", np.zeros(2, dtype=np.float32))[...] = super().observe()
        return self.buffer  # type: ignore[attr-defined, no-any-return]


class Unbounded(Toy):
    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)


class Breaks(Toy):
    def step(self, action: Any) -> Any:
        if self.time == 2:
            raise ZeroDivisionError("float division")
        return super().step(action)


BROKEN_SINGLES = [
    (NotDeterministic, r"^again with .*, step 3 after reset\(seed=0\): info\['parts'\]\['luck'\] is .* as before$"),
    (KeepsState, r"^again with .*, reset\(seed=0\): info\['episodes'\] is \d+, expected 1 as before$"),
    (NumpyFlags, r"^step 1 after reset\(seed=0\): terminated is False of type numpy.bool, expected True or False of"),
    (OutOfSpace, r"^step 3 after reset\(seed=0\): observation\[0\] is 2\d\.\d+, outside \[-20.0, 20.0\]$"),
    (WrongShape, r"^reset\(seed=0\): observation is array\(.* \(float32 array\), not in Box\(-20.0, 20.0"),
    (WordForReward, r"^step 1 after reset\(seed=0\): reward is '-\d.*', expected a number$"),
    (NoInfo, r"^reset\(seed=0\): info is None, expected a dict$"),
    (ForgetsTime, r"^a deepcopy made after step \d .*, step \d .*: observation\[1\] is .*, expected .* as before$"),
    (PickleForgetsTime, r"^a pickled copy made after step \d .*, step \d .*: observation\[1\] is"),
    (SharesGenerator, r"^a deepcopy made after step \d .*, step \d .*: observation\[0\] is"),
    (NoPickleSingle, r"^pickle after step \d after reset\(seed=0\): raises \w+: Can't pickle"),
    (OneBuffer, r"^step 1 after reset\(seed=0\): observation shares memory with observation of reset\(seed=0\), exp"),
    (Unbounded, r"^Gymnasium's check_env: raises UserWarning: WARN: A Box observation space .* -infinity"),
    (Breaks, r"^step 3 after reset\(seed=0\): raises ZeroDivisionError: float division$"),
]
