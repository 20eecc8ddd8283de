"""The checker of single environments."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Collection, Sequence
from copy import deepcopy
from importlib.util import find_spec
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import env_checker

from queue_env.checks.compare import LastReturns, first_difference, outside, shown, type_name
from queue_env.checks.failures import check_skipped, fail, reported, strict_warnings
from queue_env.distributions.checks import refuse

AnyEnv: TypeAlias = gym.Env[Any, Any]

PARTS = ("render", "copies", "spec")
_RESET_NAMES = ("observation", "info")
_STEP_NAMES = ("observation", "reward", "terminated", "truncated", "info")
# What Gymnasium says where there is no spec to make environments of for each render mode.
_NO_SPEC = "Not able to test alternative render modes"


class Moment(NamedTuple):
    """A call of an environment and what it returned.

    Attributes:
        name: the call, for messages.
        seed: of a reset; None for none.
        action: of a step; None for a reset.
        returned: observation, info, and for a step the values between them, by name.
    """

    name: str
    seed: int | None
    action: Any
    returned: dict[str, Any]


def check_env(
    env: AnyEnv,
    *,
    sb3: bool | None = None,
    steps: int = 1000,
    seed: int = 0,
    skip: Collection[str] = (),
    allow: Collection[str] = (),
) -> None:
    """Check an environment more strictly than Gymnasium's checker does; its state is then that of some episode.

    In two episodes of random actions: every observation is in its space, both flags are of type bool, the reward is
    a number, and no call returns data that share memory with those of the two calls before. Then Gymnasium's
    `check_env` on ``env.unwrapped``, with warnings as errors. Then the two episodes again, which must be the same:
    with the same seed and actions; in a deepcopy and a pickled copy made in mid-episode, and in the environment itself
    when it is copied; in one made from ``env.spec`` by way of JSON, if there is a spec and its entry points are names,
    for JSON cannot hold a class or a function that was registered. Then Stable-Baselines3's `check_env`, with warnings
    as errors.

    Args:
        env: the environment; wrappers around it are checked with it, but by Gymnasium's checker.
        sb3: run the checker of Stable-Baselines3; None runs it where that is installed.
        steps: longest episode, >= 1; a longer one is cut.
        seed: of the episodes and actions.
        skip: parts to be left out: ``"render"`` (Gymnasium's checks of rendering, which make the environment anew in
            each of its render modes), ``"copies"``, ``"spec"``.
        allow: regular expressions; a warning whose text has one of them in it is no error, such as ``"infinity"``
            for unbounded observations, or ``"symmetric"`` for what Stable-Baselines3 thinks of actions in [0, 1].

    Raises:
        EnvCheckError: the first fault that was found; any exception or warning of the environment is one.
        ValueError: a bad argument, or `sb3` is True and Stable-Baselines3 is not installed.
    """
    check_skipped("check_env", skip, PARTS)
    if steps < 1:
        refuse("check_env", "steps", ">= 1", steps)
    with_sb3 = _wants_sb3(sb3)
    if not isinstance(env, gym.Env):
        fail("check_env", f"{shown(env)} is no gymnasium.Env")
    with strict_warnings((*allow, _NO_SPEC)):
        moments = _record(env, seed, steps)
        with reported("Gymnasium's check_env"):
            env_checker.check_env(env.unwrapped, skip_render_check="render" in skip)
        _replay(env, moments, "again with the same seed and actions")
        if "copies" not in skip:
            _check_copies(env, moments)
        if env.spec is not None and "spec" not in skip and not _registered_by_value(env.spec):
            _check_spec(env.spec, moments)
        if with_sb3:
            _check_sb3(env)


def _record(env: AnyEnv, seed: int, steps: int) -> list[Moment]:
    """Two episodes of random actions, the second one without a seed; each of at most this many steps."""
    actions = deepcopy(env.action_space)
    actions.seed(seed)
    moments: list[Moment] = []
    returns = LastReturns()

    def call(name: str, first: int | None, action: Any) -> Moment:
        moment = Moment(name, first, action, {})
        returned = _call(env, moment)
        returns.add(name, name, returned)
        return moment._replace(returned=deepcopy(returned))

    for name, first in ((f"reset(seed={seed})", seed), ("the reset() after it", None)):
        moments.append(call(name, first, None))
        for step in range(1, steps + 1):
            moments.append(call(f"step {step} after {name}", None, actions.sample()))
            if moments[-1].returned["terminated"] or moments[-1].returned["truncated"]:
                break
    return moments


def _call(env: AnyEnv, moment: Moment, label: str = "") -> dict[str, Any]:
    """Do what a moment says, judge the values by themselves, and return them by name."""
    where = f"{label}{moment.name}"
    with reported(where):
        is_reset = moment.action is None
        result: Any = env.reset(seed=moment.seed) if is_reset else env.step(deepcopy(moment.action))
        names, values = _RESET_NAMES if is_reset else _STEP_NAMES, tuple(result)
        if len(values) != len(names):
            fail(where, f"returns {len(values)} values, expected {', '.join(names)}")
        returned = dict(zip(names, values, strict=True))
        _judge(env, where, returned)
    return returned


def _judge(env: AnyEnv, where: str, returned: dict[str, Any]) -> None:
    for name in ("terminated", "truncated"):
        flag = returned.get(name, False)
        if type(flag) is not bool:
            fail(where, f"{name} is {shown(flag)} of type {type_name(flag)}, expected True or False of type bool")
    if not isinstance(returned.get("reward", 0.0), Real):
        fail(where, f"reward is {shown(returned['reward'])}, expected a number")
    if not isinstance(returned["info"], dict):
        fail(where, f"info is {shown(returned['info'])}, expected a dict")
    found = outside("observation", returned["observation"], env.observation_space)
    if found is not None:
        fail(where, found)


def _replay(env: AnyEnv, moments: Sequence[Moment], label: str) -> None:
    """Do the same calls; what they return must be the same."""
    for moment in moments:
        again = _call(env, moment, f"{label}, ")
        for name, value in moment.returned.items():
            found = first_difference(name, again[name], value)
            if found is not None:
                fail(f"{label}, {moment.name}", f"{found} as before")


def _check_copies(env: AnyEnv, moments: Sequence[Moment]) -> None:
    resets = [place for place, moment in enumerate(moments) if moment.action is None]
    middle = max(1, resets[1] // 2)
    _replay(env, moments[:middle], "once more with the same seed and actions")
    after = f"after {moments[middle - 1].name}"
    copies = {}
    with reported(f"deepcopy {after}"):
        copies["a deepcopy"] = deepcopy(env)
    with reported(f"pickle {after}"):
        copies["a pickled copy"] = pickle.loads(pickle.dumps(env))
    _replay(env, moments[middle:], f"having been copied {after}")
    for label, copy in copies.items():
        _replay(copy, moments[middle:], f"{label} made {after}")
        copy.close()


def _registered_by_value(spec: EnvSpec) -> bool:
    return callable(spec.entry_point) or callable(spec.vector_entry_point)


def _check_spec(spec: EnvSpec, moments: Sequence[Moment]) -> None:
    label = "made from its spec by way of JSON"
    with reported(label):
        made = EnvSpec.from_json(spec.to_json()).make()
    _replay(made, moments, label)
    made.close()


def _wants_sb3(sb3: bool | None) -> bool:
    installed = find_spec("stable_baselines3") is not None
    if sb3 and not installed:
        refuse("check_env", "sb3", "None or False where stable_baselines3 is not installed", sb3)
    return installed if sb3 is None else sb3


def _check_sb3(env: AnyEnv) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        from stable_baselines3.common.env_checker import check_env as check_for_sb3
    with reported("Stable-Baselines3's check_env"):
        check_for_sb3(env, warn=True)
