"""Limits of the overloaded M/GI/n+GI queue as λ and n grow together with ρ = λE[S]/n > 1 fixed.

Any continuous size law and any patience law H of mean 1/θ; patience runs in queue only. W = min(V, patience)
is the time in queue of served and abandoned jobs alike. Times are in the unit of the sizes and of the
patience.

[I] is Dong and Ibrahim, "On the SRPT scheduling discipline in many-server queues with impatient customers"
(2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from queue_env.distributions.checks import refuse
from queue_env.theory.checks import overload
from queue_env.theory.many_servers import erlang_b

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queue_env.distributions import Law

Hazard = Literal["constant", "increasing", "decreasing", "unknown"]

_LARGEST_LOG = 700.0
"""Sizes beyond e^700 leave the range of doubles."""

_ROUNDING = 1e-9

_HAZARD: Mapping[str, Hazard] = {
    "exponential": "constant",
    "uniform": "increasing",
    "hyperexponential": "decreasing",
    "pareto": "decreasing",
    "lomax": "decreasing",
}


@dataclass(frozen=True)
class ManyServerLimit:
    """Limit of a policy under overload.

    Attributes:
        throughput: served jobs as a share of arrivals.
        abandonment: 1 - throughput, computed without cancellation.
        mean_waiting: limit of E[W], or None where no result covers the patience law.
        reason: why `mean_waiting` is None, else empty.
    """

    throughput: float
    abandonment: float
    mean_waiting: float | None
    reason: str = ""


def srpt_threshold(load: float, sizes: Law) -> float:
    """Return τ with E[S; S≤τ] = E[S]/ρ: the sizes up to τ alone fill the servers.

    Solved by Brent's method for log τ, to full double precision.

    Args:
        load: ρ, above 1.
        sizes: law of S without atoms and of finite mean.

    Raises:
        ValueError: load is not above 1, or so little above it that τ overflows, or the law has atoms or an
            infinite mean.

    Source: [I], (1).
    """
    from scipy.optimize import brentq

    rho = overload("srpt_threshold", load)
    if sizes.has_atoms or not math.isfinite(sizes.mean):
        refuse("srpt_threshold", "sizes", "a law without atoms and of finite mean", sizes)

    def excess(log_size: float) -> float:
        return float(sizes.truncated_mean(math.exp(log_size))) * rho / sizes.mean - 1.0

    low = high = math.log(sizes.mean)
    while excess(low) >= 0.0:
        low -= 1.0
    while excess(high) <= 0.0:
        high += 1.0
        if high > _LARGEST_LOG:
            refuse("srpt_threshold", "load", f"farther above 1 for τ of {sizes.name} sizes to be finite", load)
    return math.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-15, maxiter=200))


def srpt_limit(load: float, sizes: Law, patience: Law) -> ManyServerLimit:
    """Return the SRPT limit: throughput G(τ), abandonment 1-G(τ), E[W] = (1-G(τ))/θ.

    G is the law of the sizes. Jobs up to τ do not wait, larger ones all abandon, so the patience law counts
    by its mean only.

    Arguments and errors as for `srpt_threshold`; patience: law H, whose mean may be infinite.

    Source: [I], Theorem 2 and Proposition 3.
    """
    threshold = srpt_threshold(load, sizes)
    lost = float(sizes.tail(threshold))
    return ManyServerLimit(float(sizes.cdf(threshold)), lost, lost * patience.mean)


def fcfs_fluid_wait(load: float, patience: Law) -> float:
    """Return w with H(w) = 1-1/ρ: the wait of every job that is served under FCFS.

    Args:
        load: ρ, above 1.
        patience: law H.

    Raises:
        ValueError: load is not above 1.

    Source: Whitt, "Fluid models for multiserver queues with abandonments" (2006); [I], section 4.
    """
    return float(patience.tail_quantile(1.0 / overload("fcfs_fluid_wait", load)))


def fcfs_limit(load: float, patience: Law) -> ManyServerLimit:
    """Return the FCFS limit: throughput 1/ρ, E[W] = ∫_0^w (1-H(t)) dt = E[min(patience, w)], H(w) = 1-1/ρ.

    The size law counts by its mean only. Arguments, errors and source as for `fcfs_fluid_wait`.
    """
    wait = fcfs_fluid_wait(load, patience)
    mean_waiting = float(patience.truncated_mean(wait)) + wait * float(patience.tail(wait))
    return ManyServerLimit(1.0 / load, (load - 1.0) / load, mean_waiting)


def lcfs_limit(load: float, patience: Law) -> ManyServerLimit:
    """Return the LCFS limit: throughput 1/ρ, and E[W] = (1-1/ρ)/θ if the hazard rate does not decrease.

    A share 1/ρ is served at once, the rest abandons. For another patience law `mean_waiting` is None.

    Arguments and errors as for `fcfs_fluid_wait`.

    Source: Bassamboo and Randhawa, "Scheduling homogeneous impatient customers" (2016), Proposition 3; [I],
        section 4.1, where the formula is printed with θ for 1/θ.
    """
    lost = (overload("lcfs_limit", load) - 1.0) / load
    hazard = hazard_trend(patience)
    if hazard in ("constant", "increasing"):
        return ManyServerLimit(1.0 / load, lost, lost * patience.mean)
    reason = f"needs a constant or increasing hazard rate; that of {patience.name} patience is {hazard}"
    return ManyServerLimit(1.0 / load, lost, None, reason)


def patience_crossing(load: float, sizes: Law) -> float:
    """Return the shape of Weibull patience at which FCFS and SRPT wait equally long, in the limit; it is below 1.

    With a smaller shape, that is with a hazard rate that falls faster, FCFS has the smaller E[W]; at shape 1 and
    above SRPT has. The mean of the patience does not matter.

    Arguments and errors as for `srpt_threshold`.

    Source: [I], section 4.1 and figure 1, which shows it; solved here by Brent's method.
    """
    srpt = _mean_waiting(srpt_limit(load, sizes, _weibull(1.0)))
    return _crossing(lambda shape: _mean_waiting(fcfs_limit(load, _weibull(shape))) - srpt)


def service_crossing(load: float, patience: Law) -> float | None:
    """Return the shape of Weibull sizes at which FCFS and SRPT wait equally long, in the limit.

    With a larger shape, that is with a lighter tail of sizes, FCFS has the smaller E[W]. None if SRPT has it for
    every shape, as for patience that is exponential.

    Args:
        load: ρ, above 1.
        patience: law H of finite mean.

    Raises:
        ValueError: load is not above 1, or the mean of patience is infinite.

    Source: [I], section 4.2 and figure 3, which shows it; solved here by Brent's method.
    """
    if not math.isfinite(patience.mean):
        refuse("service_crossing", "patience", "a law of finite mean", patience)
    fcfs = _mean_waiting(fcfs_limit(load, patience))
    if fcfs >= (1.0 - _ROUNDING) * (load - 1.0) / load * patience.mean:  # what SRPT waits where all sizes are equal
        return None
    return _crossing(lambda shape: _mean_waiting(srpt_limit(load, _weibull(shape), patience)) - fcfs)


def _weibull(shape: float) -> Law:
    from queue_env.distributions import law

    return law({"law": "weibull", "shape": shape, "mean": 1.0})


def _mean_waiting(limit: ManyServerLimit) -> float:
    assert limit.mean_waiting is not None
    return limit.mean_waiting


def _crossing(difference: Callable[[float], float]) -> float:
    """Return the shape at which a difference that increases with it is zero."""
    from scipy.optimize import brentq

    low = high = 1.0
    while difference(low) > 0.0:
        low /= 1.5
    while difference(high) < 0.0:
        high *= 1.5
    return low if low == high else float(brentq(difference, low, high, xtol=1e-12, rtol=1e-12))


def hazard_trend(law: Law) -> Hazard:
    """Return how the hazard rate f/(1-F) of a law moves over its support, "unknown" where no rule is known.

    The Weibull law increases or decreases by its shape; the Pareto law counts as decreasing, as it does from
    its smallest value on.
    """
    if law.name == "weibull":
        shape = float(law.spec()["shape"])
        return "constant" if shape == 1.0 else "increasing" if shape > 1.0 else "decreasing"
    return _HAZARD.get(law.name, "unknown")


def loss_priority_class1_loss(servers: int) -> float:
    """Return the share of class 1 (size ≤ τ) lost in system L: Erlang's B(n, n).

    Class 1 does not see class 2 and is M/GI/n/n with offered load λG(τ)·E[S | S≤τ] = λE[S; S≤τ] = λE[S]/ρ =
    n, whatever the size law and load. It falls like √(2/(πn)).

    Args:
        servers: n, at least 1.

    Raises:
        ValueError: servers is not a whole number of at least 1.

    Source: [I], section 3.1 (system L).
    """
    return erlang_b(servers, float(servers))
