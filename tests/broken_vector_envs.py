"""`ToyVector` with one fault each, and what the checker must say of it."""

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode
from toy_envs import Array, Infos, ToyVector, VectorStep

NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


class WrongFinalObs(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        observations, *others, infos = super().step(actions)
        for i in np.flatnonzero(infos.get("_final_obs", [])):
            infos["final_obs"][i] = observations[i].copy()
        return observations, *others, infos  # type: ignore[return-value]


class NoFinalInfo(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        *others, infos = super().step(actions)
        infos.pop("final_info", None)
        infos.pop("_final_info", None)
        return *others, infos  # type: ignore[return-value]


class Buffer(ToyVector):
    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        super().__init__(num_envs, mode)
        self.buffer = np.zeros((num_envs, 2), dtype=np.float32)

    def observe(self) -> Array:
        self.buffer[...] = super().observe()
        return self.buffer


class TwoBuffersInTurn(ToyVector):
    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        super().__init__(num_envs, mode)
        self.buffers = [np.zeros((num_envs, 2), dtype=np.float32) for _ in range(2)]

    def observe(self) -> Array:
        self.buffers.reverse()
        self.buffers[0][...] = super().observe()
        return self.buffers[0][:]


class ReusedInfos(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        *others, infos = super().step(actions)
        self.parts: Infos
        if not hasattr(self, "parts"):
            self.parts = {}
        if "parts" in infos:
            self.parts.clear()
            self.parts.update(infos["parts"])
            infos["parts"] = self.parts
        return *others, infos  # type: ignore[return-value]


class SameSeeds(ToyVector):
    def read_seeds(self, seed: Any) -> list[int | None]:
        return [seed] * self.num_envs if isinstance(seed, int) else super().read_seeds(seed)


class FixedSeeds(ToyVector):
    """Starts anew where there is no seed."""

    def read_seeds(self, seed: Any) -> list[int | None]:
        return super().read_seeds(0 if seed is None else seed)


class AnyNumberOfSeeds(ToyVector):
    def read_seeds(self, seed: Any) -> list[int | None]:
        return super().read_seeds(seed[: self.num_envs] if isinstance(seed, list) else seed)


class OneSeedOnly(ToyVector):
    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Array, Infos]:
        np_random(seed)
        return super().reset(seed=seed, options=options)


class WrongMask(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        *others, infos = super().step(actions)
        if "summary" in infos:
            infos["_summary"][:] = True
        return *others, infos  # type: ignore[return-value]


class NoMask(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        *others, infos = super().step(actions)
        infos["parts"].pop("_noise")
        return *others, infos  # type: ignore[return-value]


class StaleInfos(ToyVector):
    """What is not masked is left over."""

    def step(self, actions: Array) -> VectorStep:
        *others, infos = super().step(actions)
        if "summary" in infos:
            infos["summary"]["length"] = self.time + 0
        return *others, infos  # type: ignore[return-value]


class RewardOnReset(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        observations, _, *others = super().step(actions)
        return observations, -np.abs(self.position), *others  # type: ignore[return-value]


class ActionNotIgnored(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        reset = self.ended
        _, *others, infos = super().step(actions)
        self.position = np.where(reset, self.position + 0.5 * (actions - 1), self.position)
        return self.observe(), *others, infos  # type: ignore[return-value]


class OffByOneEpisode(ToyVector):
    """Draws an episode that nobody sees."""

    def step(self, actions: Array) -> VectorStep:
        self.begin(self.ended, {})
        return super().step(actions)


class LateTruncation(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        *others, terminated, truncated, infos = super().step(actions)
        return *others, terminated | truncated, truncated & False, infos  # type: ignore[return-value]


class Float32Rewards(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        observations, rewards, *others = super().step(actions)
        return observations, rewards.astype(np.float32), *others  # type: ignore[return-value]


class ColumnOfRewards(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        observations, rewards, *others = super().step(actions)
        return observations, rewards[:, None], *others  # type: ignore[return-value]


class NumbersForFlags(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        *others, terminated, truncated, infos = super().step(actions)
        return *others, terminated.astype(np.int64), truncated, infos  # type: ignore[return-value]


class WideObservations(ToyVector):
    def observe(self) -> Array:
        return super().observe().astype(np.float64)


class FourValues(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        return super().step(actions)[:4]  # type: ignore[return-value]


class ChangesActions(ToyVector):
    def step(self, actions: Array) -> VectorStep:
        returned = super().step(actions)
        actions -= 1
        return returned


class OtherSpace(ToyVector):
    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        super().__init__(num_envs, mode)
        self.single_observation_space = spaces.Box(-30, 30, (2,), np.float32)


class OtherNumber(ToyVector):
    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        super().__init__(num_envs + 1, mode)


class NoMode(ToyVector):
    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        super().__init__(num_envs, mode)
        self.metadata = {"render_modes": []}


class ModeAsWord(ToyVector):
    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        super().__init__(num_envs, mode)
        self.metadata = {"autoreset_mode": mode.value}


class AlwaysNextStep(ToyVector):
    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        super().__init__(num_envs, NEXT_STEP)


class SaysOtherMode(ToyVector):
    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        super().__init__(num_envs, NEXT_STEP)
        self.metadata = {"autoreset_mode": mode}


class PopsMask(ToyVector):
    def read_mask(self, options: dict[str, Any]) -> Array:
        mask = super().read_mask(options)
        options.pop("reset_mask", None)
        return mask


class ClearsMask(ToyVector):
    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Array, Infos]:
        returned = super().reset(seed=seed, options=options)
        if "reset_mask" in (options or {}):
            options["reset_mask"][:] = False  # type: ignore[index]
        return returned


class ResetsAll(ToyVector):
    def read_mask(self, options: dict[str, Any]) -> Array:
        return np.ones_like(super().read_mask(options))


class NumbersForMask(ToyVector):
    def read_mask(self, options: dict[str, Any]) -> Array:
        mask = options.get("reset_mask")
        if isinstance(mask, np.ndarray):
            options = {"reset_mask": mask.astype(np.bool_)}
        return super().read_mask(options)


class EmptyMask(ToyVector):
    def read_mask(self, options: dict[str, Any]) -> Array:
        mask = options.get("reset_mask")
        if isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and not mask.any():
            return mask
        return super().read_mask(options)


class LongMask(ToyVector):
    def read_mask(self, options: dict[str, Any]) -> Array:
        mask = options.get("reset_mask")
        if isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and len(mask) > self.num_envs:
            raise IndexError("boolean index did not match")
        return super().read_mask(options)


class RefusesTooLate(ToyVector):
    def read_mask(self, options: dict[str, Any]) -> Array:
        try:
            return super().read_mask(options)
        except TypeError:
            self.time += 1
            raise


class ForgetsGenerators(ToyVector):
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "generators": [np_random(i)[0] for i in range(self.num_envs)]}


class ForgetsEnds(ToyVector):
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "ended": np.zeros_like(self.ended)}


class SharesState(ToyVector):
    def __deepcopy__(self, memo: Any) -> ToyVector:
        copy = type(self)(self.num_envs, self.mode)
        copy.__dict__.update(self.__dict__)
        return copy


class NoPickle(ToyVector):
    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        super().__init__(num_envs, mode)
        self.spare = lambda: None


class StaysOpen(ToyVector):
    def close(self, **kwargs: Any) -> None:
        self.closed = False


class ClosesOnce(ToyVector):
    def close(self, **kwargs: Any) -> None:
        if self.closed:
            raise RuntimeError("is closed")
        super().close(**kwargs)


BROKEN_VECTORS = [
    (WrongFinalObs, SAME_STEP, r"sub-env \d: infos\['final_obs'\]\[0\] is .* \(its episode ended in this step"),
    (NoFinalInfo, SAME_STEP, r"step \d+ after reset\(seed=0\): infos lacks 'final_info', '_final_info'; it has"),
    (Buffer, NEXT_STEP, r"step 1 after reset\(seed=0\): observations shares memory with observations of reset\(seed=0"),
    (TwoBuffersInTurn, NEXT_STEP, r"step 2 after .*: observations shares memory with observations of reset\(seed=0\)"),
    (ReusedInfos, SAME_STEP, r"step \d+ after .*: infos\['parts'\] shares memory with infos\['parts'\] of step \d+"),
    (SameSeeds, NEXT_STEP, r"NEXT_STEP, reset\(seed=0\), sub-env 1: observations\[0\] is .* \(its seed is 1\)"),
    (FixedSeeds, NEXT_STEP, r"reset\(\), sub-env 0: observations\[0\] is .* \(its generator goes on, since"),
    (AnyNumberOfSeeds, NEXT_STEP, r"reset with 4 seeds for 3 sub-envs: is accepted, expected TypeError or ValueError"),
    (OneSeedOnly, NEXT_STEP, r"reset\(seed=\[21, 14, 7\]\): raises Error: Seed must be a python integer"),
    (WrongMask, NEXT_STEP, r"step \d+ .*sub-env \d: infos\['_summary'\] is True, expected False"),
    (NoMask, NEXT_STEP, r"step 1 .*: infos\['parts'\] lacks '_noise'; it has \['noise', 'pair', '_pair'\], expected"),
    (StaleInfos, NEXT_STEP, r"step \d+ .*sub-env \d: infos\['summary'\]\['length'\] is \d+, expected 0"),
    (RewardOnReset, NEXT_STEP, r"rewards is -\d\.\d+, expected 0.0 \(its episode ended a step before: this step"),
    (ActionNotIgnored, NEXT_STEP, r"observations\[0\] is .* \(its episode ended a step before: .* ignores its action"),
    (OffByOneEpisode, NEXT_STEP, r"observations\[0\] is .* \(its episode ended a step before: this step resets it"),
    (LateTruncation, NEXT_STEP, r"sub-env \d: terminations is True, expected False"),
    (Float32Rewards, NEXT_STEP, r"step 1 .*: rewards has dtype float32, expected float64"),
    (ColumnOfRewards, NEXT_STEP, r"step 1 .*: rewards has shape \(3, 1\), expected \(3,\)"),
    (NumbersForFlags, DISABLED, r"step 1 .*: terminations has dtype int64, expected bool"),
    (WideObservations, NEXT_STEP, r"reset\(seed=0\): observations has dtype float64, expected float32"),
    (FourValues, NEXT_STEP, r"returns 4 values, expected observations, rewards, terminations, truncations, infos"),
    (
        ChangesActions,
        NEXT_STEP,
        r"step 1 .*: the caller's actions\[\d\] is -?\d, expected \d as it was before the call",
    ),
    (OtherSpace, NEXT_STEP, r"single_observation_space is Box\(-30.0, 30.0.*, expected Box\(-20.0, 20.0"),
    (OtherNumber, NEXT_STEP, r"NEXT_STEP: num_envs is 4, expected 3"),
    (NoMode, NEXT_STEP, r"metadata: has no 'autoreset_mode', only \['render_modes'\]"),
    (ModeAsWord, NEXT_STEP, r"metadata\['autoreset_mode'\]: is 'NextStep' of type str, expected an AutoresetMode"),
    (AlwaysNextStep, SAME_STEP, r"SAME_STEP: metadata\['autoreset_mode'\] is .*NEXT_STEP, expected .*SAME_STEP"),
    (SaysOtherMode, SAME_STEP, r"observations\[0\] is .* \(its episode ended in this step, which resets it\)"),
    (PopsMask, DISABLED, r"'reset_mask': \[.*\]\}\) following step \d+.*: the caller's options lacks 'reset_mask'"),
    (ClearsMask, DISABLED, r"the caller's options\['reset_mask'\]\[\d\] is False, expected True as it was before"),
    (ResetsAll, DISABLED, r"following step .*: observations\[0\] is .* \(reset_mask is False: it must stay as it is\)"),
    (NumbersForMask, DISABLED, r"reset with reset_mask of dtype int64: is accepted, expected TypeError or ValueError"),
    (EmptyMask, DISABLED, r"reset with reset_mask without True: is accepted"),
    (LongMask, DISABLED, r"reset_mask of shape \(4,\): raises IndexError: .*; expected TypeError or ValueError"),
    (RefusesTooLate, DISABLED, r"sub-env 0: observations\[1\] is"),
    (ForgetsGenerators, NEXT_STEP, r"step \d+ after reset\(seed=0\) in a deepcopy made after step \d+ after"),
    (ForgetsEnds, NEXT_STEP, r"in a deepcopy made after step \d+ .* \(its episode ended a step before"),
    (SharesState, NEXT_STEP, r"in a deepcopy made after step \d+ .*sub-env \d: observations"),
    (NoPickle, NEXT_STEP, r"making a pickled copy after step \d+ .*: raises \w+: Can't pickle"),
    (StaysOpen, NEXT_STEP, r"close\(\): closed is False, expected True"),
    (ClosesOnce, NEXT_STEP, r"close\(\) for the second time: raises RuntimeError: is closed"),
]
