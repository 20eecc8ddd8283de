"""Exact laws of many exponential servers: Erlang B, Erlang C (M/M/n) and Erlang A (M/M/n+M).

n servers of speed 1, Poisson arrivals of rate λ, exponential sizes of mean 1/μ, offered load a = λ/μ, ρ =
a/n. All sums are taken in logarithms, so that n = 10,000 neither overflows nor loses digits. Times are in the
unit of 1/λ and 1/μ.

Under Erlang C the number in system has the same law for every policy that keeps min(n, N) servers' worth of
capacity busy and does not look at sizes (fcfs, lcfs, plcfs, ps, las), so these share the mean response time;
the laws of waiting and response are for fcfs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import digamma, expit, exprel, logsumexp

from queue_env.distributions.checks import positive, refuse
from queue_env.theory.checks import many_server_rates, times, whole_servers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

_NEGLIGIBLE = -80.0
"""Logarithm of the relative weight below which states are left out (10^-35)."""

_MAX_STATES = 2**23


def erlang_b(servers: int, offered_load: float) -> float:
    """Return B(n,a) = (aⁿ/n!) / Σ_{k≤n} aᵏ/k!, the fraction of arrivals lost in M/G/n/n.

    Any size law: the loss depends on it by its mean only.

    Args:
        servers: n, at least 1.
        offered_load: a = λE[S], any real number above 0.

    Raises:
        ValueError: an argument is out of range.

    Source: Erlang (1917); Harchol-Balter (2013), section 14.2; insensitivity: Sevastyanov (1957).
    """
    n, load = whole_servers("erlang_b", servers), positive("erlang_b", "offered_load", offered_load)
    return math.exp(-np.logaddexp(0.0, _log_idle_weight(n, load)))


def erlang_c(servers: int, offered_load: float) -> float:
    """Return C(n,a) = B(n,a) / (1-ρ(1-B(n,a))), the probability that an arrival of M/M/n waits; ρ = a/n < 1.

    Args:
        servers: n, at least 1.
        offered_load: a = λ/μ, above 0 and below `servers`.

    Raises:
        ValueError: an argument is out of range.

    Source: Harchol-Balter (2013), section 14.3; the stable form through B: Cooper, "Introduction to Queueing
        Theory" (1981), section 3.4.
    """
    n, load = whole_servers("erlang_c", servers), positive("erlang_c", "offered_load", offered_load)
    if load >= n:
        refuse("erlang_c", "offered_load", f"below servers = {n}", offered_load)
    blocked = erlang_b(n, load)
    return blocked / (1.0 - load / n * (1.0 - blocked))


def mmn_mean_waiting(arrival_rate: float, service_rate: float, servers: int) -> float:
    """Return E[W] = C(n,a) / (nμ-λ), the mean time in queue of M/M/n.

    Args:
        arrival_rate: λ, above 0 and below servers·service_rate.
        service_rate: μ = 1/E[S], above 0.
        servers: n, at least 1.

    Raises:
        ValueError: an argument is out of range.

    Source: Harchol-Balter (2013), section 14.3.
    """
    waits, spare_rate = _delay("mmn_mean_waiting", arrival_rate, service_rate, servers)
    return waits / spare_rate


def mmn_mean_response(arrival_rate: float, service_rate: float, servers: int) -> float:
    """Return E[T] = 1/μ + C(n,a) / (nμ-λ) of M/M/n under fcfs, lcfs, plcfs, ps or las.

    For ps this holds for every size law of mean 1/μ, since the rate min(1, n/N) makes the queue symmetric.

    Arguments and errors as for `mmn_mean_waiting`.

    Source: Harchol-Balter (2013), section 14.3; ps: Cohen, "The multiple phase service network with
        generalized processor sharing" (1979); Kelly, "Reversibility and Stochastic Networks" (1979), section
        3.3.
    """
    return mmn_mean_waiting(arrival_rate, service_rate, servers) + 1.0 / service_rate


def mmn_waiting_tail(arrival_rate: float, service_rate: float, servers: int, t: ArrayLike) -> Array:
    """Return P[W>t] = C(n,a)·e^{-(nμ-λ)t} under fcfs, shape of `t`.

    Args:
        arrival_rate: λ, above 0 and below servers·service_rate.
        service_rate: μ, above 0.
        servers: n, at least 1.
        t: times, at least 0.

    Raises:
        ValueError: an argument is out of range.

    Source: Kleinrock, "Queueing Systems" volume 1 (1975), chapter 3.
    """
    waits, spare_rate = _delay("mmn_waiting_tail", arrival_rate, service_rate, servers)
    return np.asarray(waits * np.exp(-spare_rate * times("mmn_waiting_tail", "t", t)))


def mmn_response_tail(arrival_rate: float, service_rate: float, servers: int, t: ArrayLike) -> Array:
    """Return P[T>t] = e^{-μt} + C(n,a)·μ·(e^{-μt} - e^{-ηt})/(η-μ) with η = nμ-λ, under fcfs, shape of `t`.

    Written with exprel(z) = (e^z-1)/z, which also covers η = μ.

    Arguments and errors as for `mmn_waiting_tail`.

    Source: the convolution of `mmn_waiting_tail` with the exponential size.
    """
    waits, spare_rate = _delay("mmn_response_tail", arrival_rate, service_rate, servers)
    time = times("mmn_response_tail", "t", t)
    slower = min(spare_rate, service_rate)
    overlap = time * exprel(-abs(spare_rate - service_rate) * time) * np.exp(-slower * time)
    return np.asarray(np.exp(-service_rate * time) + waits * service_rate * overlap)


def super_server_response_tail(arrival_rate: float, service_rate: float, servers: int, t: ArrayLike) -> Array:
    """Return P[T>t] = e^{-(nμ-λ)t} of fcfs on one server of speed n (M/M/1), shape of `t`.

    Arguments and errors as for `mmn_waiting_tail`.

    Source: Harchol-Balter (2013), chapter 13 (M/M/1).
    """
    _, spare_rate = _delay("super_server_response_tail", arrival_rate, service_rate, servers)
    return np.asarray(np.exp(-spare_rate * times("super_server_response_tail", "t", t)))


@dataclass(frozen=True)
class ErlangA:
    """Stationary M/M/n+M: Erlang's delay queue with exponential patience, clock running in queue only.

    The means over all jobs and `abandonment` hold for fcfs, lcfs and plcfs alike, `waits` and `no_wait` for
    fcfs and lcfs, the means over served and over abandoned jobs for fcfs.

    Attributes:
        abandonment: P[abandon], a share of all arrivals.
        waits: P[W>0] = P[N≥n].
        no_wait: P[W=0] = P[N<n], to full relative accuracy too, but 0 below 10^-35.
        mean_queue: E[(N-n)⁺], jobs.
        mean_number: E[N], jobs.
        mean_waiting: E[W] of served and abandoned jobs together, W = min(V, patience).
        mean_waiting_served: E[W | served].
        mean_waiting_abandoned: E[W | abandoned].
    """

    abandonment: float
    waits: float
    no_wait: float
    mean_queue: float
    mean_number: float
    mean_waiting: float
    mean_waiting_served: float
    mean_waiting_abandoned: float


def erlang_a(arrival_rate: float, service_rate: float, servers: int, abandonment_rate: float) -> ErlangA:
    """Return the exact stationary measures of M/M/n+M.

    The number in system is a birth-death chain with π_{n+j}/π_n = Π_{i≤j} λ/(nμ+iθ). An arrival that finds
    n+j in system leaves the queue through the steps j, ..., 0 of length Exp(nμ+(i+1)θ), independent of how
    each step ends, so P[served | j] = nμ/(nμ+(j+1)θ), E[W | served, j] = Σ_{i≤j} 1/(nμ+(i+1)θ) and E[W;
    abandoned | j] = Σ_{i≤j} P[abandon | i] / (nμ+(j+1)θ): sums of positive terms only.

    Args:
        arrival_rate: λ, above 0; the load may exceed 1.
        service_rate: μ, above 0.
        servers: n, at least 1.
        abandonment_rate: θ = 1/(mean patience), above 0.

    Raises:
        ValueError: an argument is out of range, or θ is so small that over 2^23 states carry weight.

    Source: Palm (1957); Mandelbaum and Zeltyn, "Service engineering in action: the Palm/Erlang-A queue"
        (2007), section 2; Garnett, Mandelbaum and Reiman, "Designing a call center with impatient customers"
        (2002).
    """
    rate, service, n = many_server_rates("erlang_a", arrival_rate, service_rate, servers)
    theta = positive("erlang_a", "abandonment_rate", abandonment_rate)
    capacity = n * service
    queue, log_total = _queue_law(rate, capacity, theta)
    steps = capacity + (queue.length + 1.0) * theta
    served_given = capacity / steps
    served_time, abandoned_sum = _step_sums(queue.length, capacity, theta)
    waits, no_wait = _split(log_total, _log_idle_weight(n, rate / service))
    lost_given_wait = float(queue.weight @ ((queue.length + 1.0) * theta / steps))
    lost_time = float(queue.weight @ (abandoned_sum / steps))
    kept_time = float(queue.weight @ (served_given * served_time))
    lost, mean_queue = waits * lost_given_wait, waits * float(queue.weight @ queue.length)
    return ErlangA(
        abandonment=lost,
        waits=waits,
        no_wait=no_wait,
        mean_queue=mean_queue,
        mean_number=mean_queue + (1.0 - lost) * rate / service,
        mean_waiting=mean_queue / rate,
        mean_waiting_served=waits * kept_time / (1.0 - lost),
        mean_waiting_abandoned=lost_time / lost_given_wait,
    )


@dataclass(frozen=True)
class _QueueLaw:
    """Law of the queue length given that all servers are busy: `(states,)` lengths, weights of sum 1."""

    length: Array
    weight: Array


def _delay(owner: str, arrival_rate: float, service_rate: float, servers: int) -> tuple[float, float]:
    """C(n,a) and the spare rate nμ-λ."""
    rate, service, n = many_server_rates(owner, arrival_rate, service_rate, servers)
    if rate >= n * service:
        refuse(owner, "arrival_rate", f"below servers * service_rate = {n * service:.6g}", arrival_rate)
    return erlang_c(n, rate / service), n * service - rate


def _log_idle_weight(servers: int, offered_load: float) -> float:
    """Logarithm of Σ_{k<n} π_k/π_n = 1/B(n,a) - 1."""
    return float(logsumexp(np.cumsum(np.log(np.arange(servers, 0.0, -1.0) / offered_load))))


def _split(log_first: float, log_second: float) -> tuple[float, float]:
    """Shares of two weights given by their logarithms, each to full relative accuracy."""
    return float(expit(log_first - log_second)), float(expit(log_second - log_first))


def _queue_law(rate: float, capacity: float, theta: float) -> tuple[_QueueLaw, float]:
    """Law of the queue length given N≥n, and log Σ_j π_{n+j}/π_n (inf if j = 0 carries no weight).

    The weights are summed outwards from the mode, which under overload lies at about (λ-nμ)/θ.
    """
    mode = max(0, math.floor((rate - capacity) / theta))
    _refuse_a_wide_law(mode, rate, capacity, theta)
    above = _outward(mode, 1, rate, capacity, theta)
    below = _outward(mode, -1, rate, capacity, theta)
    logs = np.concatenate((below[::-1], [0.0], above))
    length = np.arange(mode - below.size, mode + above.size + 1, dtype=np.float64)
    log_sum = float(logsumexp(logs))
    log_total = log_sum - float(logs[0]) if length[0] == 0.0 else math.inf
    return _QueueLaw(length, np.exp(logs - log_sum)), log_total


def _refuse_a_wide_law(mode: int, rate: float, capacity: float, theta: float) -> None:
    """ValueError if _MAX_STATES above the mode do not reach the negligible; below it the law falls faster.

    The logarithm is concave, so the mean of its values at the two ends is a lower bound of its mean.
    """
    first, last = (math.log((capacity + (mode + step) * theta) / rate) for step in (1, _MAX_STATES))
    if _MAX_STATES * 0.5 * (first + last) < -_NEGLIGIBLE:
        refuse("erlang_a", "abandonment_rate", f"larger: over {_MAX_STATES} states count", theta)


def _outward(mode: int, direction: int, rate: float, capacity: float, theta: float) -> Array:
    """log(π_{n+j}/π_{n+mode}) for j going up (+1) or down (-1) from the mode until negligible or empty."""
    room = mode if direction < 0 else _MAX_STATES
    width = min(256, room)
    while True:
        step = np.arange(1.0, width + 1.0)
        death = capacity + (mode + step if direction > 0 else mode - step + 1.0) * theta
        logs: Array = np.cumsum(np.log(rate / death if direction > 0 else death / rate))
        if width == room or logs[-1] < _NEGLIGIBLE:
            return logs[logs >= _NEGLIGIBLE]
        width = min(4 * width, room)


def _step_sums(length: Array, capacity: float, theta: float) -> tuple[Array, Array]:
    """For every queue length j found: Σ_{i≤j} 1/(nμ+(i+1)θ) and Σ_{i≤j} (i+1)θ/(nμ+(i+1)θ)."""
    first = float(length[0])
    steps = capacity + (length + 1.0) * theta
    scaled = capacity / theta
    time_before = float(digamma(scaled + first + 1.0) - digamma(scaled + 1.0)) / theta if first > 0 else 0.0
    lost_before = first - capacity * time_before
    time: Array = time_before + np.cumsum(1.0 / steps)
    return time, lost_before + np.cumsum((length + 1.0) * theta / steps)
