"""A vector environment that is driven beside a `SyncVectorEnv` with the same seeds and actions."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from queue_env.checks.compare import LastReturns, first_difference, outside, position
from queue_env.checks.failures import fail, reported

AnyVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]
Mask: TypeAlias = NDArray[np.bool_]
# What is said of each sub-environment when it differs.
Notes: TypeAlias = Sequence[str]
MakeSingle: TypeAlias = Callable[[], gym.Env[Any, Any]]

_RESET_NAMES = ("observations", "infos")
_STEP_NAMES = ("observations", "rewards", "terminations", "truncations", "infos")


@dataclass
class Subject:
    """An environment under check.

    Attributes:
        env: the environment.
        label: which copy it is, for messages; empty for the environment itself.
        returns: what its last calls returned.
    """

    env: AnyVectorEnv
    label: str = ""
    returns: LastReturns = field(default_factory=LastReturns)


class Trial:
    """Calls a vector environment and its reference in the same way, and compares all they return.

    Attributes:
        mode: autoreset mode of both.
        env: the vector environment.
        ended: for each sub-environment, whether its episode ended with the last step.
        last: name of the last call.
    """

    def __init__(self, mode: AutoresetMode, env: AnyVectorEnv, make_single: MakeSingle, num_envs: int, exact: bool):
        self.mode = mode
        self.env = env
        self.ended: Mask = np.zeros(num_envs, dtype=np.bool_)
        self.last = "nothing"
        self._since = ""
        self._clock = 0
        self._exact = exact
        self._reference: AnyVectorEnv = SyncVectorEnv([make_single] * num_envs, autoreset_mode=mode)
        self._subjects = [Subject(env)]

    @property
    def reference(self) -> AnyVectorEnv:
        """The `SyncVectorEnv`."""
        return self._reference

    def reset(self, seed: int | list[int] | None = None, options: dict[str, Any] | None = None) -> None:
        """Reset all sub-environments."""
        name = f"reset({'' if seed is None else f'seed={seed}'})"
        notes = _seed_notes(seed, len(self.ended))
        self._call(name, "reset", {"seed": seed, "options": options}, lambda _: notes)
        self._since, self._clock = name, 0
        self.ended = np.zeros_like(self.ended)

    def reset_some(self, mask: Mask, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Reset the sub-environments where the mask is True."""
        arguments = {"seed": seed, "options": {**(options or {}), "reset_mask": mask}}
        seeded = "" if seed is None else f"seed={seed}, "
        name = f"reset({seeded}options={{'reset_mask': {mask.tolist()}}}) following {self.last}"
        notes = [f" (reset_mask is {chosen}{'' if chosen else ': it must stay as it is'})" for chosen in mask]
        self._call(name, "reset", arguments, lambda _: notes)
        self.ended = self.ended & ~mask

    def step(self, actions: Any) -> None:
        """Take a step, and note which episodes ended."""
        self._clock += 1
        before = self.ended
        expected = self._call(
            f"step {self._clock} after {self._since}",
            "step",
            {"actions": actions},
            lambda expected: self._step_notes(before, expected),
        )
        self.ended = expected["terminations"] | expected["truncations"]

    def fork(self) -> None:
        """From now on, drive copies of the environment beside it."""
        ways: dict[str, Callable[[AnyVectorEnv], AnyVectorEnv]] = {
            "a deepcopy": deepcopy,
            "a pickled copy": lambda env: pickle.loads(pickle.dumps(env)),
        }
        for way, copied in ways.items():
            with reported(f"{self.mode.name}, making {way} after {self.last}"):
                self._subjects.append(Subject(copied(self.env), f" in {way} made after {self.last}"))

    def drop_copies(self) -> None:
        """Close all copies and go on without them."""
        for subject in self._subjects[1:]:
            with reported(f"{self.mode.name}, close(){subject.label}"):
                subject.env.close()
        del self._subjects[1:]

    def refused(self, what: str, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        """The environment must refuse to be reset with these arguments."""
        where = f"{self.mode.name}, reset with {what}"
        try:
            self.env.reset(seed=seed, options=options)
        except (TypeError, ValueError, AssertionError):
            return
        except Exception as error:
            fail(where, f"raises {type(error).__name__}: {error}; expected TypeError or ValueError")
        fail(where, "is accepted, expected TypeError or ValueError")

    def close(self) -> None:
        """Close everything but the environment."""
        self.drop_copies()
        self._reference.close()

    def _call(
        self, name: str, method: str, arguments: dict[str, Any], notes: Callable[[dict[str, Any]], Notes]
    ) -> dict[str, Any]:
        """Call the reference and all subjects, compare, and return what the reference did, by name."""
        names = _STEP_NAMES if method == "step" else _RESET_NAMES
        expected = dict(zip(names, _do(self._reference, method, deepcopy(arguments)), strict=True))
        self.last = name
        for subject in self._subjects:
            where = f"{self.mode.name}, {name}{subject.label}"
            with reported(where):
                given = deepcopy(arguments)
                values = tuple(_do(subject.env, method, given))
                _check_untouched(where, given, arguments)
            if len(values) != len(names):
                fail(where, f"returns {len(values)} values, expected {', '.join(names)}")
            got = dict(zip(names, values, strict=True))
            self._compare(where, got, expected, notes(expected))
            subject.returns.add(where, name, got)
            found = outside("observations", got["observations"], subject.env.observation_space)
            if found is not None:
                fail(where, found)
        return expected

    def _compare(self, where: str, got: dict[str, Any], expected: dict[str, Any], notes: Notes) -> None:
        for name, value in expected.items():
            found = first_difference(name, got[name], value, exact=self._exact)
            if found is None:
                continue
            if not found.place:
                fail(where, str(found))
            sub_env, *rest = found.place
            fail(f"{where}, sub-env {sub_env}", f"{found.path}{position(tuple(rest))} {found.text}{notes[sub_env]}")

    def _step_notes(self, before: Mask, expected: dict[str, Any]) -> Notes:
        if self.mode is AutoresetMode.NEXT_STEP:
            note = " (its episode ended a step before: this step resets it, and ignores its action)"
            return [note if ended else "" for ended in before]
        if self.mode is AutoresetMode.SAME_STEP:
            note = " (its episode ended in this step, which resets it)"
            return [note if ended else "" for ended in expected["terminations"] | expected["truncations"]]
        return [""] * len(before)


def _do(env: AnyVectorEnv, method: str, arguments: dict[str, Any]) -> Any:
    # Environments name the argument of step as they like.
    return env.step(arguments["actions"]) if method == "step" else env.reset(**arguments)


def _seed_notes(seed: int | list[int] | None, num_envs: int) -> Notes:
    if seed is None:
        return [" (its generator goes on, since there is no seed)"] * num_envs
    seeds = [seed + i for i in range(num_envs)] if isinstance(seed, int) else seed
    return [f" (its seed is {one})" for one in seeds]


def _check_untouched(where: str, given: dict[str, Any], arguments: dict[str, Any]) -> None:
    for name, value in arguments.items():
        found = first_difference(f"the caller's {name}", given[name], value)
        if found is not None:
            fail(where, f"{found} as it was before the call")
