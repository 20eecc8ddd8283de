"""Mean response time and slowdown in the M/G/1 queue under the classical policies.

One server of speed 1, Poisson arrivals of rate λ, independent sizes S with tail F̄, load ρ = λE[S] < 1. The
time unit is that of the sizes and of 1/λ. Ties in size go to the earlier arrival. A server of speed n is the
same queue with the sizes divided by n: pass `sizes.scaled(1 / n)`.

Notation: ρ(x) = λE[S; S≤x] and ρ(x-) = λE[S; S<x], equal unless the law has an atom at x.

The means over sizes are computed by quadrature along the law's quantiles and are accurate to about 1e-8,
infinite variance included.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from queue_env.distributions.checks import refuse
from queue_env.theory.checks import single_server_load, times
from queue_env.theory.quadrature import LOWEST_DECADE, expectation, panel_integrals, size_ladder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from queue_env.distributions import Law

    Array = NDArray[np.float64]
    Conditional = Callable[[float, Law, ArrayLike], Array]


def fcfs_mean_waiting(arrival_rate: float, sizes: Law) -> float:
    """Return E[W] = λE[S²] / (2(1-ρ)), the mean time in queue under FCFS.

    inf if the size variance is infinite. The same mean holds for every non-preemptive policy that does not
    look at sizes, LCFS among them.

    Args:
        arrival_rate: λ [jobs per time unit], above 0.
        sizes: law of S [time units].

    Raises:
        ValueError: arrival_rate is not positive, or the load is 1 or more.

    Source: Harchol-Balter, "Performance Modeling and Design of Computer Systems" (2013), chapter 23
        (Pollaczek-Khinchine) and chapter 29 (non-preemptive policies blind to sizes).
    """
    load = single_server_load("fcfs_mean_waiting", arrival_rate, sizes)
    return float(0.5 * arrival_rate * _second_moment(sizes) / (1.0 - load))


def fcfs_response(arrival_rate: float, sizes: Law, x: ArrayLike) -> Array:
    """Return E[T(x)] = x + E[W] under FCFS or non-preemptive LCFS, shape of `x`.

    Arguments, errors and source as for `fcfs_mean_waiting`; x [time units] at least 0.
    """
    size = times("fcfs_response", "x", x)
    return np.asarray(size + fcfs_mean_waiting(arrival_rate, sizes))


def ps_response(arrival_rate: float, sizes: Law, x: ArrayLike) -> Array:
    """Return E[T(x)] = x/(1-ρ) under PS or preemptive LCFS, shape of `x`; the law counts by its mean only.

    Args:
        arrival_rate: λ, above 0.
        sizes: law of S.
        x: sizes at which to evaluate [time units], at least 0.

    Raises:
        ValueError: arrival_rate is not positive, x is negative, or the load is 1 or more.

    Source: Harchol-Balter (2013), sections 30.1 (PS) and 30.2 (preemptive LCFS); Kleinrock, "Queueing
        Systems" volume 2 (1976), chapter 4.
    """
    load = single_server_load("ps_response", arrival_rate, sizes)
    return np.asarray(times("ps_response", "x", x) / (1.0 - load))


def sjf_response(arrival_rate: float, sizes: Law, x: ArrayLike) -> Array:
    """Return E[T(x)] = x + λE[S²] / (2(1-ρ(x))(1-ρ(x-))) under non-preemptive SJF.

    Arguments and errors as for `ps_response`; shape of `x`. inf if the size variance is infinite.

    Source: Harchol-Balter (2013), section 31.3; Phipps, "Machine repair as a priority waiting-line problem"
        (1956).
    """
    single_server_load("sjf_response", arrival_rate, sizes)
    size = times("sjf_response", "x", x)
    waiting = 0.5 * arrival_rate * _second_moment(sizes) * _busy_factor(arrival_rate, sizes, size)
    return np.asarray(size + waiting)


def psjf_response(arrival_rate: float, sizes: Law, x: ArrayLike) -> Array:
    """Return E[T(x)] = x/(1-ρ(x-)) + λE[S²; S≤x] / (2(1-ρ(x))(1-ρ(x-))) under preemptive SJF.

    Arguments and errors as for `ps_response`; shape of `x`. Finite for infinite variance.

    Source: Harchol-Balter (2013), section 32.3.
    """
    single_server_load("psjf_response", arrival_rate, sizes)
    size = times("psjf_response", "x", x)
    work = 0.5 * arrival_rate * sizes.truncated_moment(size, 2)
    spare = 1.0 - arrival_rate * sizes.truncated_moment(_just_below(size), 1)
    return np.asarray(size / spare + work * _busy_factor(arrival_rate, sizes, size))


def srpt_response(arrival_rate: float, sizes: Law, x: ArrayLike) -> Array:
    """Return E[T(x)] under SRPT: the waiting until first served plus the residence time.

    E[T(x)] = λ(E[S²; S≤x] + x²F̄(x)) / (2(1-ρ(x))(1-ρ(x-))) + ∫_0^x dt/(1-ρ(t)).

    Arguments and errors as for `ps_response`; shape of `x`. Finite for infinite variance.

    Source: Schrage and Miller, "The queue M/G/1 with the shortest remaining processing time discipline"
        (1966); Harchol-Balter (2013), section 33.1.
    """
    single_server_load("srpt_response", arrival_rate, sizes)
    size = times("srpt_response", "x", x)
    work = 0.5 * arrival_rate * _capped_second_moment(sizes, size)
    return np.asarray(work * _busy_factor(arrival_rate, sizes, size) + _residence(arrival_rate, sizes, size))


def las_response(arrival_rate: float, sizes: Law, x: ArrayLike) -> Array:
    """Return E[T(x)] = x/(1-ρ_x) + λE[min(S,x)²] / (2(1-ρ_x)²), ρ_x = λE[min(S,x)], under LAS.

    LAS is also called foreground-background. Arguments and errors as for `ps_response`; shape of `x`. Finite
    for infinite variance.

    Source: Harchol-Balter (2013), section 30.3; Kleinrock volume 2 (1976), chapter 4.
    """
    single_server_load("las_response", arrival_rate, sizes)
    size = times("las_response", "x", x)
    capped_mean = sizes.truncated_moment(size, 1) + size * sizes.tail(size)
    spare = 1.0 - arrival_rate * capped_mean
    work = 0.5 * arrival_rate * _capped_second_moment(sizes, size)
    return np.asarray(size / spare + work / spare**2)


_TINY = float(np.finfo(np.float64).tiny)
"""The smallest size: quantiles of a law very dense at 0 underflow."""

CONDITIONAL_RESPONSE: Mapping[str, Conditional] = {
    "fcfs": fcfs_response,
    "lcfs": fcfs_response,
    "plcfs": ps_response,
    "ps": ps_response,
    "sjf": sjf_response,
    "psjf": psjf_response,
    "srpt": srpt_response,
    "las": las_response,
}
"""Policy name to E[T(x)]."""

SLOWDOWN_POLICIES = ("plcfs", "ps", "psjf", "srpt", "las")
"""Policies whose E[T(x)]/x stays bounded as x→0; that of the others needs E[1/S], often infinite."""


def mean_response(policy: str, arrival_rate: float, sizes: Law) -> float:
    """Return E[T] = ∫ E[T(x)] dF(x) of the M/G/1 queue under a policy, in the time unit of the sizes.

    fcfs, lcfs, ps and plcfs are closed forms, the others are integrated numerically. inf for fcfs, lcfs and
    sjf if the size variance is infinite.

    Args:
        policy: a key of `CONDITIONAL_RESPONSE`.
        arrival_rate: λ, above 0.
        sizes: law of S.

    Raises:
        ValueError: unknown policy, arrival_rate not positive, or a load of 1 or more.

    Source: as for the policy's function of x.
    """
    response = _conditional("mean_response", policy, CONDITIONAL_RESPONSE)
    single_server_load("mean_response", arrival_rate, sizes)
    if response in (fcfs_response, ps_response):  # linear in x, so the mean size stands for the law
        return float(response(arrival_rate, sizes, sizes.mean))
    if policy == "sjf" and math.isinf(sizes.variance):
        return math.inf
    return expectation(sizes, partial(response, arrival_rate, sizes))


def mean_slowdown(policy: str, arrival_rate: float, sizes: Law) -> float:
    """Return E[T/S] = ∫ E[T(x)]/x dF(x) (a ratio of at least 1) of the M/G/1 queue under a policy.

    1/(1-ρ) for ps and plcfs; the others are integrated numerically.

    Args:
        policy: one of `SLOWDOWN_POLICIES`.
        arrival_rate: λ, above 0.
        sizes: law of S.

    Raises:
        ValueError: unknown policy, arrival_rate not positive, or a load of 1 or more.

    Source: Harchol-Balter (2013), chapter 28 (definition); as for the policy's function of x.
    """
    bounded = {name: CONDITIONAL_RESPONSE[name] for name in SLOWDOWN_POLICIES}
    response = _conditional("mean_slowdown", policy, bounded)
    load = single_server_load("mean_slowdown", arrival_rate, sizes)
    if response is ps_response:
        return 1.0 / (1.0 - load)

    def slowdown(x: Array) -> Array:
        size = np.maximum(x, _TINY)
        return response(arrival_rate, sizes, size) / size

    return expectation(sizes, slowdown)


def _conditional(owner: str, policy: str, known: Mapping[str, Conditional]) -> Conditional:
    if policy not in known:
        refuse(owner, "policy", f"one of {', '.join(known)}", policy)
    return known[policy]


def _second_moment(sizes: Law) -> float:
    return sizes.variance + sizes.mean**2


def _capped_second_moment(sizes: Law, size: Array) -> Array:
    """E[min(S,x)²]; the product is ordered so that x² cannot overflow before F̄(x) brings it down."""
    return np.asarray(sizes.truncated_moment(size, 2) + (size * sizes.tail(size)) * size)


def _just_below(size: Array) -> Array:
    """Turn a moment over S≤x into one over S<x: they differ at an atom only."""
    return np.nextafter(size, 0.0)


def _busy_factor(arrival_rate: float, sizes: Law, size: Array) -> Array:
    """1/((1-ρ(x))(1-ρ(x-))): equal sizes that came earlier go first, equal sizes that come later do not."""
    at_most = 1.0 - arrival_rate * sizes.truncated_moment(size, 1)
    below = 1.0 - arrival_rate * sizes.truncated_moment(_just_below(size), 1)
    return np.asarray(1.0 / (at_most * below))


def _residence(arrival_rate: float, sizes: Law, size: Array) -> Array:
    """∫_0^x dt/(1-ρ(t)) for every x, by panels in log t between neighbouring sizes."""

    def integrand(log_t: Array) -> Array:
        t = np.exp(log_t)
        return np.asarray(t / (1.0 - arrival_rate * sizes.truncated_moment(t, 1)))

    start = max(float(sizes.quantile(10.0**-LOWEST_DECADE)), _TINY)  # ρ(t) is nothing below it
    ends = np.unique(size[size > start])
    if not ends.size:
        return size
    ladder = size_ladder(sizes)
    edges = np.unique(np.concatenate(([start], ladder[(ladder > start) & (ladder < ends[-1])], ends)))
    below = np.concatenate(([0.0], np.cumsum(panel_integrals(integrand, np.log(edges)))))
    return np.where(size > start, start + below[np.searchsorted(edges, np.maximum(size, start))], size)
