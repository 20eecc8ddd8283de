"""Policies by what is written on a command line: reference policies, objects of modules, and saved models."""

from __future__ import annotations

import importlib
import operator
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queue_env.distributions.checks import refuse
from queue_env.network import network_file
from queue_env.plan import make_plan, reference_policies
from queue_env.rules import POLICIES, OnePolicy, parse_policy
from queue_env.scenarios import Scenario
from queue_env.scoring.curve import label_of, runnable_policy
from queue_env.scoring.strata import check_decomposable
from queue_env.user_policies import UserPolicy

if TYPE_CHECKING:
    from queue_env.scoring.agent_blocks import AgentPolicy

__all__ = ["check_policies", "load_policy", "stable_policies"]

ALGORITHMS = ("A2C", "DDPG", "DQN", "PPO", "SAC", "TD3")
_DEFAULT_ALGORITHM = "PPO"
_OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_ALLOWED = (
    "a reference policy such as srpt or thresh-split:d=2, learned:FILE.json, module:attribute, model.zip, or "
    "algorithm:model.zip"
)
# In which an agent acts that says nothing about it.
_USUAL = {"action": "anchor", "observation": "compact", "symmetric_actions": False}


def load_policy(text: str, model: Scenario) -> Any:
    """Return the policy that a text names.

    Args:
        text: a reference policy with its parameters, or a learned one, such as ``learned:FILE.json``; or
            ``module:attribute``, where the module may be in the current directory: a policy made by `index_policy`,
            `anchor_policy` or `allocation_policy`, or an agent, which is anything with `predict`. If an agent has the
            attribute `env_arguments`, a mapping, these are the arguments of its environment; if it has spaces they are
            found by them; else it sees the compact view and sets the anchor's rate. Or ``model.zip`` or
            ``algorithm:model.zip``, a model of Stable-Baselines3, PPO if not said.
            **Such a file is a pickle, which can run any code: load none that you do not trust.**
        model: the scenario, to which a model's spaces are compared.

    Returns:
        What `simulate` takes, or an `AgentPolicy`.

    Raises:
        ValueError: there is no such policy; says what is allowed.
        ImportError: Stable-Baselines3 is needed and not installed.
    """
    if network_file(text) is None:
        if text.endswith(".zip"):
            return _saved_model(text, model)
        if _OBJECT.fullmatch(text) and text.partition(":")[0] not in POLICIES:
            return _as_policy(text, _imported(text), model)
    parse_policy(text)
    return text


def check_policies(policies: Sequence[Any], model: Scenario, caller: str) -> list[str]:
    """Return the labels of policies, all of which can be scored on a scenario.

    Args:
        policies: as `load_policy` returns them.
        model: the scenario.
        caller: name for messages.

    Raises:
        ValueError: a policy cannot run or has no steady state, or two have the same label; or the scenario has no
            decomposition although its jobs have no patience.
    """
    if model.patience is None:
        check_decomposable(model, caller)
    labels = [_check(policy, model, caller) for policy in policies]
    for label in labels:
        if labels.count(label) > 1:
            refuse(caller, "policy", "all different", label)
    return labels


def stable_policies(model: Scenario) -> list[str]:
    """Return the labels of all reference policies that can run on a scenario and have a steady state there."""
    names = reference_policies(model)
    return [name for name in names if not make_plan(model, [name]).settings[0].note]


def _check(policy: Any, model: Scenario, caller: str) -> str:
    try:
        return label_of(runnable_policy(model, policy, caller))
    except TypeError as error:  # an environment has no such argument
        raise ValueError(f"{caller}: env_arguments of {policy.label}: {error}") from error


# ---- objects of modules --------------------------------------------------------------------------


def _imported(text: str) -> Any:
    module, _, attribute = text.partition(":")
    here = os.getcwd()
    if not {"", here} & set(sys.path):
        sys.path.insert(0, here)  # as `python -m` does
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there; something that it imports is not
        raise ValueError(f"policy={text!r}: there is no module {error.name!r}; allowed: {_ALLOWED}") from error
    try:
        return operator.attrgetter(attribute)(found)
    except AttributeError:
        raise ValueError(f"policy={text!r}: the module {module!r} has no {attribute!r}; allowed: {_ALLOWED}") from None


def _as_policy(text: str, found: Any, model: Scenario) -> OnePolicy | AgentPolicy:
    if isinstance(found, UserPolicy):
        return found
    from queue_env.scoring.agent_blocks import AgentPolicy, agent_policy

    if isinstance(found, AgentPolicy):
        return found
    if isinstance(found, type) or not callable(getattr(found, "predict", None)):
        kind = "a class" if isinstance(found, type) else f"of type {type(found).__name__}"
        allowed = "a policy made by index_policy, anchor_policy or allocation_policy, or an object with predict"
        raise ValueError(f"policy={text!r} is {kind}; allowed: {allowed}")
    if hasattr(found, "env_arguments"):
        arguments = dict(found.env_arguments)
    elif hasattr(found, "observation_space") and hasattr(found, "action_space"):
        arguments = _arguments_by_spaces(text, found, model)
    else:
        arguments = dict(_USUAL)
    return agent_policy(found, label=text, **arguments)


# ---- saved models --------------------------------------------------------------------------------


def _saved_model(text: str, model: Scenario) -> AgentPolicy:
    # What is before the colon is an algorithm, unless it is a part of the path.
    before, colon, after = text.partition(":")
    named, path = (before, Path(after)) if colon and not Path(text).exists() else (_DEFAULT_ALGORITHM, Path(text))
    algorithm = named.upper()
    if algorithm not in ALGORITHMS:
        raise ValueError(f"policy={text!r}: algorithm={named!r}, allowed: {', '.join(ALGORITHMS)}")
    if not path.is_file():
        raise ValueError(f"policy={text!r}: there is no file {str(path)!r}; allowed: {_ALLOWED}")
    try:
        import stable_baselines3
    except ImportError as error:
        raise ImportError("a saved model needs Stable-Baselines3: install queue-env[sb3]") from error
    print(f"note: {path} holds pickles, which can run any code: load no file that you do not trust", file=sys.stderr)
    try:
        agent = getattr(stable_baselines3, algorithm).load(path, device="cpu")
    except Exception as error:  # a file of something else can raise nearly anything
        reason = f"{type(error).__name__}: {error}"
        allowed = f"a model that Stable-Baselines3's {algorithm} has saved, or algorithm:model.zip for one of another"
        raise ValueError(f"policy={text!r} does not load as {algorithm} ({reason}); allowed: {allowed}") from error
    from queue_env.scoring.agent_blocks import agent_policy

    return agent_policy(agent, label=text, **_arguments_by_spaces(text, agent, model))


def _arguments_by_spaces(text: str, agent: Any, model: Scenario) -> dict[str, Any]:
    """Return the arguments of the environment of a scenario that has the spaces of an agent."""
    from queue_env.env import QueueEnv

    for arguments in _candidates():
        env = QueueEnv(model.to_dict(), **arguments)
        if env.observation_space == agent.observation_space and env.action_space == agent.action_space:
            return arguments
    shown = f"{_shape(agent.observation_space)} to {_shape(agent.action_space)}"
    kinds = "action anchor or rule with any observation, allocation with flat or dict, or threshold with summary"
    raise ValueError(
        f"policy={text!r} maps {shown}, which no environment of {model.name} ({model.servers} servers) does by its "
        f"defaults; allowed: an agent trained with {kinds}, or one with env_arguments"
    )


def _candidates() -> Iterator[dict[str, Any]]:
    for action in ("anchor", "rule", "allocation"):
        for observation in ("compact", "flat", "dict"):
            if (action, observation) == ("allocation", "compact"):
                continue  # it names rows of the table, which that view has not
            for symmetric in (False, True) if action != "rule" else (False,):
                yield {"action": action, "observation": observation, "symmetric_actions": symmetric}
    for knowledge in ("known", "unknown"):
        for symmetric in (False, True):
            yield {"action": "threshold", "size_knowledge": knowledge, "symmetric_actions": symmetric}


def _shape(space: Any) -> str:
    return str(space) if space.shape in (None, ()) else f"{space.shape} in [{space.low.min():g}, {space.high.max():g}]"
