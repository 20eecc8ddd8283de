"""Policies resolved for a system: what the kernel needs to know, with defaults that depend on load and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from queue_env.kernel import layout
from queue_env.network import NetworkPolicy
from queue_env.rules import MARGINS, POLICIES, Policy

if TYPE_CHECKING:
    from queue_env.distributions import Law

__all__ = ["Setting", "set_up"]


@dataclass(frozen=True)
class Setting:
    """What the kernel needs to know of a policy on a system.

    Attributes:
        policy: the policy, its parameters as given.
        kernel: values for the ``SYSTEM`` record.
        speed: of each server.
        spare: delta = n(1-load).
        parameters: the policy's numbers, shape (k,).
        note: what a reader of the results must know, if anything.
    """

    policy: Policy
    kernel: Mapping[str, int]
    speed: float
    spare: float
    parameters: np.ndarray[Any, np.dtype[np.float64]]
    note: str = ""


def set_up(policy: Policy, servers: int, spare: float, sizes: Law, *, endless: bool = True) -> Setting:
    """Resolve a policy for a system.

    Args:
        policy: the policy.
        servers: number of servers n.
        spare: delta = n(1-load), used where the policy does not give its own.
        sizes: law of the sizes, for defaults that depend on it.
        endless: whether jobs go on arriving for ever, so that no part of the system may be overloaded.

    Raises:
        ValueError: the policy cannot run on this system; says why.
    """
    super_server = policy.name == "super-server" and policy.user is None
    spare = float(policy.parameters.get("delta", spare))
    kernel = dict(policy.user.kernel if policy.user is not None else POLICIES[policy.name].kernel)
    one_aside = kernel["family"] == layout.ANCHOR
    kernel["servers"] = 1 if super_server else servers
    kernel["capacity"] = kernel["servers"] - one_aside
    kernel["dual"] = int(kernel["capacity"] > layout.SMALL)
    kernel["many"] = layout.MANY
    numbers = _numbers(policy, servers, spare, sizes, endless)
    note = _overload(numbers[0], servers, spare, sizes) if policy.name == "thresh-split" and endless else ""
    speed = float(servers) if super_server else 1.0
    return Setting(policy, kernel, speed, spare, np.array(numbers, dtype=np.float64), note)


def _numbers(policy: Policy, servers: int, spare: float, sizes: Law, endless: bool) -> tuple[float, ...]:
    if isinstance(policy.user, NetworkPolicy):
        return (sizes.mean, *policy.user.parameters)
    if policy.user is not None:
        return policy.user.parameters
    given = policy.parameters
    if policy.name == "thresh-split":
        return (_threshold(given.get("d"), servers, sizes, endless),)
    if policy.name == "dynasplit":
        return _margin(given, spare)
    if policy.name == "backlog-split":
        return (float(given.get("b", 1.0)), float(given.get("kappa", 0.3)))
    if policy.name in ("loss-priority", "two-class"):
        return (_class_boundary(policy.name, given.get("tau"), servers, spare, sizes),)
    return ()


def _threshold(given: float | str | None, servers: int, sizes: Law, endless: bool) -> float:
    if servers < 2 and (given is None or endless):
        raise ValueError(f"thresh-split: servers={servers}, allowed: at least 2, one for each kind of job")
    return _truncation(sizes, (servers - 1) / servers) if given is None else float(given)


def _overload(d: float, servers: int, spare: float, sizes: Law) -> str:
    """Say which side of thresh-split gets more work than it can do, if one does though the whole does not."""
    work = servers - spare
    small = work * float(sizes.truncated_mean(d)) / sizes.mean
    if spare <= 0 or (small < servers - 1 and work - small < 1):
        return ""
    return (
        f"thresh-split: d={d:g} overloads one side, so there is no steady state: work {small:.3g} for {servers - 1} "
        f"server(s) of sizes up to d, {work - small:.3g} for one of larger sizes"
    )


def _margin(given: Mapping[str, float | str], spare: float) -> tuple[float, float]:
    if not spare > 0:
        raise ValueError(f"dynasplit: delta={spare:g}, allowed: above 0 (a load below 1, or delta given)")
    kind = str(given.get("margin", "log"))
    shape = float(given.get("shape", {"log": 2.0, "power": 0.5, "constant": 0.25}[kind]))
    if kind == "log" and shape < 2:
        raise ValueError(f"dynasplit: shape={shape:g}, allowed: at least 2, so that the margin is at most delta/2")
    if kind == "constant" and shape > 0.5:
        raise ValueError(f"dynasplit: shape={shape:g}, allowed: at most 0.5, so that the margin is at most delta/2")
    return float(MARGINS[kind]), shape


def _class_boundary(name: str, given: float | str | None, servers: int, spare: float, sizes: Law) -> float:
    if given is not None:
        return float(given)
    if spare >= 0:
        raise ValueError(f"{name}: tau is not given and load={1 - spare / servers:g}; allowed: tau, or a load above 1")
    return _truncation(sizes, servers / (servers - spare))


def _truncation(sizes: Law, share: float) -> float:
    """Return x with E[S; S<=x] = share of E[S]."""
    low, high = sizes.support
    high = min(high, float(sizes.tail_quantile(1e-300)))
    if sizes.has_atoms:
        points = np.unique(sizes.tail_quantile(np.linspace(1, 0, 4097)))
        below = points[sizes.truncated_mean(points) <= share * sizes.mean]
        return float(below[-1]) if len(below) else float(points[0])
    low = max(low, float(sizes.quantile(1e-12)))
    root = brentq(
        lambda y: float(sizes.truncated_mean(math.exp(y))) - share * sizes.mean, math.log(low), math.log(high)
    )
    return math.exp(root)
