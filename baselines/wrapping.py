"""From an environment, however wrapped, to the queue inside; wrappers must leave observations and actions alone."""

from __future__ import annotations

import inspect
from itertools import pairwise
from typing import Any

from queue_env.distributions.checks import refuse

__all__ = ["unwrap"]


def unwrap(env: Any) -> Any:
    """Return the `QueueEnv` or `QueueVectorEnv` inside an environment.

    Args:
        env: one of them, with or without wrappers of Gymnasium, or Stable-Baselines3's view of it and its wrappers. Of
            several environments in one process the first is taken.

    Raises:
        ValueError: there is none inside, or a wrapper has changed the observations or the actions.
    """
    chain = [env]
    while not all(_has(chain[-1], name) for name in ("config", "layout", "actions")):
        inner = _inside(chain[-1])
        if inner is None:
            refuse("agent", "env", "a QueueEnv or QueueVectorEnv in this process, wrapped or not", env)
        chain.append(inner)
    for inner, outer in pairwise(chain[::-1]):
        _check_wrapper(outer, inner)
    return chain[-1]


def _has(env: Any, name: str) -> bool:
    """Whether an environment has an attribute of its own; wrappers pass on requests for what they do not have."""
    nothing = object()
    return inspect.getattr_static(env, name, nothing) is not nothing


def _inside(env: Any) -> Any:
    for name in ("env", "venv"):
        if _has(env, name):
            return getattr(env, name)
    return env.envs[0] if _has(env, "envs") else None


def _check_wrapper(outer: Any, inner: Any) -> None:
    name = type(outer).__name__
    for what in ("observation", "action"):
        if _space(outer, what) != _space(inner, what):
            _refuse_wrapper(name, what)
    # VecNormalize of Stable-Baselines3 changes observations but leaves their space as it was.
    if _has(outer, "norm_obs") and outer.norm_obs:
        _refuse_wrapper(name, "observation")


def _refuse_wrapper(name: str, what: str) -> None:
    allowed = (
        f"wrapped so that {what}s stay as they are, but {name} changes the {what} space or its values; leave it out "
        "where the agent acts"
    )
    refuse("agent", "env", allowed, name)


def _space(env: Any, what: str) -> Any:
    """The space of one environment's observations or actions."""
    single = f"single_{what}_space"
    return getattr(env, single if _has(env, single) else f"{what}_space")
