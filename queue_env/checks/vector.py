"""The checker of vector environments, for which Gymnasium has none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any, TypeAlias, TypeVar

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from queue_env.checks.compare import shown, type_name
from queue_env.checks.failures import EnvCheckError, check_skipped, fail, reported
from queue_env.checks.trial import AnyVectorEnv, MakeSingle, Mask, Trial
from queue_env.distributions.checks import refuse

MakeVector: TypeAlias = Callable[[int, AutoresetMode], AnyVectorEnv]

_Closable = TypeVar("_Closable", AnyVectorEnv, Trial)

PARTS = ("copies", "list seeds", "close")
_SPACES = ("single_observation_space", "single_action_space", "observation_space", "action_space")
# Steps after a reset that is checked by itself.
_FEW = 5
# How often a sub-environment in mid-episode is reset beside those whose episodes have ended.
_RESET_EARLY = 0.25


def check_vector_env(
    make_vector: MakeVector,
    make_single: MakeSingle,
    *,
    num_envs: int = 3,
    steps: int = 200,
    seed: int = 0,
    modes: Iterable[AutoresetMode] | None = None,
    exact: bool = True,
    options: dict[str, Any] | None = None,
    skip: Collection[str] = (),
) -> None:
    """Check a vector environment against a `SyncVectorEnv` of the single one, with the same seeds and actions.

    The two must agree in their spaces, in ``metadata["autoreset_mode"]``, and in all that `reset` and `step` return:
    values, dtypes, shapes, and in infos the keys, the masks and what stands where a mask is False (zeros or None).
    This covers the final observations and infos of SAME_STEP, the reset step of NEXT_STEP, and ``reset_mask`` of
    DISABLED. Resets are with a seed (sub-env i has seed + i), with a list of seeds, with none, and with the first
    seed again. Besides: what a call returns shares no memory with what the two calls before did; the caller's
    actions and options stay as they are; a deepcopy and a pickled copy made where an episode ends go on identically;
    wrong masks and lists of seeds are refused with TypeError or ValueError, and then change nothing; `close` sets
    ``closed`` and may be called twice.

    Args:
        make_vector: given `num_envs` and an autoreset mode, makes the vector environment. It may ignore the mode.
        make_single: makes the single environment.
        num_envs: sub-environments, >= 1; with one, mixing them up cannot be seen.
        steps: length of the main run in each mode, long enough for some episodes to end.
        seed: of everything, >= 0.
        modes: the modes to check, each of which `make_vector` must know. None checks the one that is in the metadata
            of ``make_vector(num_envs, AutoresetMode.NEXT_STEP)``.
        exact: False lets floats differ by 1e-5, relatively or absolutely, and in their width.
        options: given to every reset but the automatic ones.
        skip: parts to be left out: ``"copies"``, ``"list seeds"``, ``"close"``.

    Raises:
        EnvCheckError: the first difference; the message names the mode, the call, the sub-environment, the key, both
            values (expected is that of `SyncVectorEnv`). Or make_single's environments do not repeat themselves.
        ValueError: a bad argument; or no episode ended, so that hardly anything was checked.
    """
    _check_arguments(num_envs, steps, seed, skip)
    _check_repeatable(make_single, num_envs, steps, seed, options)
    chosen = (_own_mode(make_vector, num_envs),) if modes is None else tuple(modes)
    if not chosen or not all(isinstance(mode, AutoresetMode) for mode in chosen):
        refuse("check_vector_env", "modes", "None, or at least one AutoresetMode", modes)
    for mode in chosen:
        with (
            _closing(_made(make_vector, num_envs, mode)) as env,
            _closing(Trial(mode, env, make_single, num_envs, exact)) as trial,
        ):
            _check_declarations(trial, num_envs)
            _Script(trial, seed, options).run(steps, skip)
            if "close" not in skip:
                _check_close(trial)


class _Script:
    """What is done with an environment, in order."""

    def __init__(self, trial: Trial, seed: int, options: dict[str, Any] | None) -> None:
        self._trial = trial
        self._seed = seed
        self._options = options
        self._random = np.random.default_rng(seed)
        self._actions = deepcopy(trial.reference.action_space)
        self._actions.seed(seed)

    def run(self, steps: int, skip: Collection[str]) -> None:
        """All of it.

        Raises:
            EnvCheckError: see `check_vector_env`.
            ValueError: no episode ended in the main run.
        """
        trial = self._trial
        trial.reset(self._seed, self._options)
        if not self.steps(steps, fork="copies" not in skip):
            refuse("check_vector_env", "steps", "so large that an episode ends in them", steps)
        trial.drop_copies()
        for seed in (None, self._seed):
            trial.reset(seed, self._options)
            self.steps(_FEW)
        if "list seeds" not in skip:
            self._list_seeds()
        if trial.mode is AutoresetMode.DISABLED:
            self._masks()

    def steps(self, number: int, *, fork: bool = False) -> bool:
        """Take random steps, copy at the first end of an episode (or midway), and say whether any ended."""
        trial, some_ended = self._trial, False
        for step in range(number):
            trial.step(self._actions.sample())
            some_ended = some_ended or bool(trial.ended.any())
            if fork and (some_ended or step == number // 2):
                trial.fork()
                fork = False
            if trial.mode is AutoresetMode.DISABLED and trial.ended.any():
                trial.reset_some(self._with_others(trial.ended), options=self._options)
        return some_ended

    def _with_others(self, ended: Mask) -> Mask:
        return np.asarray(ended | (self._random.random(len(ended)) < _RESET_EARLY))

    def _list_seeds(self) -> None:
        num_envs = len(self._trial.ended)
        self._trial.reset([self._seed + 7 * (num_envs - i) for i in range(num_envs)], self._options)
        self.steps(_FEW)
        self._trial.refused(f"{num_envs + 1} seeds for {num_envs} sub-envs", seed=[self._seed] * (num_envs + 1))
        self.steps(1)

    def _masks(self) -> None:
        num_envs = len(self._trial.ended)
        every_other = np.arange(num_envs) % 2 == 0
        self._trial.reset_some(every_other, self._seed + 100, self._options)
        self.steps(_FEW)
        wrong: dict[str, object] = {
            "reset_mask of dtype int64": np.ones(num_envs, dtype=np.int64),
            f"reset_mask of shape ({num_envs + 1},)": np.ones(num_envs + 1, dtype=np.bool_),
            "reset_mask without True": np.zeros(num_envs, dtype=np.bool_),
            "a list for reset_mask": [True] * num_envs,
        }
        for what, mask in wrong.items():
            self._trial.refused(what, options={**(self._options or {}), "reset_mask": mask})
            self.steps(1)


def _check_arguments(num_envs: int, steps: int, seed: int, skip: Collection[str]) -> None:
    for name, value, least in (("num_envs", num_envs, 1), ("steps", steps, 1), ("seed", seed, 0)):
        if value < least:
            refuse("check_vector_env", name, f">= {least}", value)
    check_skipped("check_vector_env", skip, PARTS)


@contextmanager
def _closing(thing: _Closable) -> Iterator[_Closable]:
    """Close at the end, without hiding the error that was found by one of closing."""
    try:
        yield thing
    finally:
        with suppress(Exception):
            thing.close()


def _made(make_vector: MakeVector, num_envs: int, mode: AutoresetMode) -> AnyVectorEnv:
    where = f"make_vector({num_envs}, AutoresetMode.{mode.name})"
    with reported(where):
        env = make_vector(num_envs, mode)
    if not isinstance(env, VectorEnv):
        fail(where, f"is {shown(env)}, no gymnasium.vector.VectorEnv")
    return env


def _own_mode(make_vector: MakeVector, num_envs: int) -> AutoresetMode:
    with _closing(_made(make_vector, num_envs, AutoresetMode.NEXT_STEP)) as env:
        return _declared_mode(env)


def _declared_mode(env: AnyVectorEnv) -> AutoresetMode:
    if "autoreset_mode" not in env.metadata:
        fail("metadata", f"has no 'autoreset_mode', only {shown(list(env.metadata))}")
    mode = env.metadata["autoreset_mode"]
    if not isinstance(mode, AutoresetMode):
        fail("metadata['autoreset_mode']", f"is {shown(mode)} of type {type_name(mode)}, expected an AutoresetMode")
    return mode


def _check_declarations(trial: Trial, num_envs: int) -> None:
    env, where = trial.env, trial.mode.name
    declared = _declared_mode(env)
    if declared is not trial.mode:
        fail(where, f"metadata['autoreset_mode'] is {declared}, expected {trial.mode}, with which it was made")
    if getattr(env, "num_envs", None) != num_envs:
        fail(where, f"num_envs is {shown(getattr(env, 'num_envs', None))}, expected {num_envs}")
    for name in _SPACES:
        got, expected = getattr(env, name, None), getattr(trial.reference, name)
        if got != expected:
            fail(where, f"{name} is {shown(got)}, expected {shown(expected)}")


def _check_close(trial: Trial) -> None:
    with reported(f"{trial.mode.name}, close()"):
        trial.env.close()
    if trial.env.closed is not True:
        fail(f"{trial.mode.name}, close()", f"closed is {shown(trial.env.closed)}, expected True")
    with reported(f"{trial.mode.name}, close() for the second time"):
        trial.env.close()


def _check_repeatable(
    make_single: MakeSingle, num_envs: int, steps: int, seed: int, options: dict[str, Any] | None
) -> None:
    """Two `SyncVectorEnv` of the single environment agree: else nothing can be compared with one."""
    mode = AutoresetMode.NEXT_STEP
    again: AnyVectorEnv = SyncVectorEnv([make_single] * num_envs, autoreset_mode=mode)
    try:
        with _closing(again), _closing(Trial(mode, again, make_single, num_envs, exact=True)) as trial:
            trial.reset(seed, options)
            _Script(trial, seed, options).steps(steps)
    except EnvCheckError as error:
        raise EnvCheckError(f"make_single: two SyncVectorEnv of it are not the same: {error}") from error
