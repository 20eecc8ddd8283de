"""Every closed form that applies to a scenario, as a flat list: what `queue-env theory SCENARIO` prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from queue_env.theory import impatience, many_servers, single_server
from queue_env.theory.tail_bound import regime, tail_lower_bound

if TYPE_CHECKING:
    from queue_env.distributions import Law
    from queue_env.scenarios import Scenario

Kind = Literal["exact", "bound", "limit"]

BOUND_DECADES = 5
"""The tail bound is listed at 1, 10, ..., 10^4 mean service times, the range of the tail score."""

_BLIND = ("fcfs", "lcfs", "plcfs", "ps", "las")
"""Policies that do not look at sizes: exponential sizes make their number in system the same."""

_REGULARLY_VARYING = ("pareto", "lomax")

_TEXTBOOK = "Harchol-Balter, Performance Modeling and Design of Computer Systems (2013)"
_PAPER_LIMITS = "Dong and Ibrahim (2021)"
_PAPER_TAIL = "Li, Harchol-Balter and Scheller-Wolf, DynaSPLIT"

_SINGLE_SERVER: dict[str, tuple[str, str]] = {
    "fcfs": ("E[S] + λE[S²]/(2(1-ρ))", f"{_TEXTBOOK}, chapter 23"),
    "lcfs": ("E[S] + λE[S²]/(2(1-ρ))", f"{_TEXTBOOK}, chapter 29"),
    "plcfs": ("E[S]/(1-ρ)", f"{_TEXTBOOK}, section 30.2"),
    "ps": ("E[S]/(1-ρ)", f"{_TEXTBOOK}, section 30.1"),
    "sjf": ("E[x + λE[S²]/(2(1-ρ(x))²)]", f"{_TEXTBOOK}, section 31.3"),
    "psjf": ("E[x/(1-ρ(x)) + λE[S²; S≤x]/(2(1-ρ(x))²)]", f"{_TEXTBOOK}, section 32.3"),
    "srpt": ("E[∫_0^x dt/(1-ρ(t)) + λE[min(S,x)²]/(2(1-ρ(x))²)]", "Schrage and Miller (1966)"),
    "las": ("E[x/(1-ρ_x) + λE[min(S,x)²]/(2(1-ρ_x)²)], ρ_x = λE[min(S,x)]", f"{_TEXTBOOK}, section 30.3"),
}


@dataclass(frozen=True)
class TheoryValue:
    """One number that theory gives for a scenario.

    Attributes:
        quantity: what it is, e.g. "mean response".
        policy: policy name, or "any" for a bound on every policy.
        value: the number; may be inf.
        unit: "time" (that of the sizes), "jobs", "probability" or "ratio".
        formula: the formula in Unicode.
        source: textbook or paper, with section or equation.
        kind: "exact", "bound" (no policy is below it) or "limit" (n, λ→∞ at this load).
    """

    quantity: str
    policy: str
    value: float
    unit: str
    formula: str
    source: str
    kind: Kind


def applicable(scenario: Scenario) -> list[TheoryValue]:
    """Return every closed form that holds for a scenario; empty if none does.

    Without patience: the tail bound; for Poisson arrivals also the mean bound, M/G/1 for one server,
    generalised PS for many, Erlang C for exponential sizes. With patience, Poisson arrivals and a clock that
    stands during service: Erlang A for exponential sizes and patience; for a load above 1 the many-server
    limits, and what no policy can beat with any number of servers.

    Args:
        scenario: the model.

    Raises:
        ValueError: exponential patience is so long that Erlang A is out of reach (see `erlang_a`).
    """
    poisson = scenario.arrivals["process"] == "poisson"
    if scenario.patience is not None:
        standing = scenario.clock != "sojourn"
        return list(_with_patience(scenario, scenario.patience)) if poisson and standing else []
    values = list(_tail_bounds(scenario))
    if poisson:
        values += _mean_bound(scenario)
        values += _one_server(scenario) if scenario.servers == 1 else _many_servers(scenario)
    return values


def _tail_bounds(scenario: Scenario) -> Iterator[TheoryValue]:
    if regime(scenario) == "lower":
        formula = "F̄(t), for every t"
    else:
        proved = scenario.sizes.name in _REGULARLY_VARYING
        formula = "F̄(ct), c = n(1-ρ), " + ("as t→∞" if proved else "a bound only for regularly varying sizes")
    for decade in range(BOUND_DECADES):
        factor = 10**decade
        value = float(tail_lower_bound(scenario, factor * scenario.sizes.mean))
        yield TheoryValue(f"P[T > {factor} E[S]]", "any", value, "probability", formula, f"{_PAPER_TAIL}, (6)", "bound")


def _mean_bound(scenario: Scenario) -> Iterator[TheoryValue]:
    """SRPT on one server of speed n is optimal for the mean; with n = 1 it is the system itself."""
    fast_sizes = scenario.sizes.scaled(1.0 / scenario.servers)
    fast = single_server.mean_response("srpt", scenario.arrival_rate, fast_sizes)
    formula, source = "SRPT on one server of speed n", _SINGLE_SERVER["srpt"][1]
    yield TheoryValue("mean response", "super-server", fast, "time", formula, source, "exact")
    bound = max(fast, scenario.sizes.mean)
    formula, source = f"max(E[S], {formula})", "Schrage (1968), optimality of SRPT"
    yield TheoryValue("mean response", "any", bound, "time", formula, source, "bound")


def _one_server(scenario: Scenario) -> Iterator[TheoryValue]:
    rate, sizes = scenario.arrival_rate, scenario.sizes
    for policy, (formula, source) in _SINGLE_SERVER.items():
        value = single_server.mean_response(policy, rate, sizes)
        yield TheoryValue("mean response", policy, value, "time", formula, source, "exact")
    for policy in single_server.SLOWDOWN_POLICIES:
        value, source = single_server.mean_slowdown(policy, rate, sizes), _SINGLE_SERVER[policy][1]
        formula = "1/(1-ρ)" if policy in ("ps", "plcfs") else "E[E[T(x)]/x]"
        yield TheoryValue("mean slowdown", policy, value, "ratio", formula, source, "exact")
    waiting = single_server.fcfs_mean_waiting(rate, sizes)
    for policy in ("fcfs", "lcfs"):
        source = _SINGLE_SERVER[policy][1]
        yield TheoryValue("mean waiting", policy, waiting, "time", "λE[S²]/(2(1-ρ))", source, "exact")


def _many_servers(scenario: Scenario) -> Iterator[TheoryValue]:
    """Erlang C. Without exponential sizes only ps keeps its mean, by insensitivity."""
    rate, mean, servers = scenario.arrival_rate, scenario.sizes.mean, scenario.servers
    exponential = scenario.sizes.name == "exponential"
    response = many_servers.mmn_mean_response(rate, 1.0 / mean, servers)
    formula, source = "1/μ + C(n,a)/(nμ-λ)", f"{_TEXTBOOK}, section 14.3"
    for policy in _BLIND if exponential else ("ps",):
        origin = "Cohen (1979)" if policy == "ps" else source
        yield TheoryValue("mean response", policy, response, "time", formula, origin, "exact")
    yield TheoryValue("mean slowdown", "ps", response / mean, "ratio", "E[T]/E[S]", "Cohen (1979)", "exact")
    if exponential:
        waiting = many_servers.mmn_mean_waiting(rate, 1.0 / mean, servers)
        waits = many_servers.erlang_c(servers, rate * mean)
        for policy in ("fcfs", "lcfs"):
            yield TheoryValue("mean waiting", policy, waiting, "time", "C(n,a)/(nμ-λ)", source, "exact")
            yield TheoryValue("P[W > 0]", policy, waits, "probability", "C(n,a)", source, "exact")


def _with_patience(scenario: Scenario, patience: Law) -> Iterator[TheoryValue]:
    if scenario.sizes.name == "exponential" and patience.name == "exponential":
        yield from _erlang_a(scenario, patience.mean)
    if scenario.load > 1.0:
        yield from _overload(scenario, patience)


def _erlang_a(scenario: Scenario, mean_patience: float) -> Iterator[TheoryValue]:
    """Erlang A, for policies that give a job a whole server or nothing: ps and las would stop the clocks."""
    law = many_servers.erlang_a(scenario.arrival_rate, 1.0 / scenario.sizes.mean, scenario.servers, 1.0 / mean_patience)
    shared = (
        ("P[abandon]", law.abandonment, "probability", "Σ_j π_{n+j}·(j+1)θ/(nμ+(j+1)θ)"),
        ("mean waiting", law.mean_waiting, "time", "E[Q]/λ"),
        ("mean number in queue", law.mean_queue, "jobs", "Σ_j j·π_{n+j}"),
        ("mean number in system", law.mean_number, "jobs", "E[Q] + (1-P[abandon])·λ/μ"),
    )
    on_arrival = (("P[W > 0]", law.waits, "probability", "Σ_j π_{n+j}"),)
    in_order = (
        ("mean waiting of served jobs", law.mean_waiting_served, "time", "E[W; served]/P[served]"),
        ("mean waiting of abandoned jobs", law.mean_waiting_abandoned, "time", "E[W; abandon]/P[abandon]"),
    )
    rows = {"fcfs": shared + on_arrival + in_order, "lcfs": shared + on_arrival, "plcfs": shared}
    source = "Palm (1957); Mandelbaum and Zeltyn (2007), section 2"
    for policy, quantities in rows.items():
        for quantity, value, unit, formula in quantities:
            yield TheoryValue(quantity, policy, value, unit, formula, source, "exact")


def _overload(scenario: Scenario, patience: Law) -> Iterator[TheoryValue]:
    load, sizes = scenario.load, scenario.sizes
    fcfs, lcfs = impatience.fcfs_limit(load, patience), impatience.lcfs_limit(load, patience)
    yield from _limit("fcfs", fcfs, "1/ρ", "∫_0^w (1-H), H(w) = 1-1/ρ", "section 4")
    wait, source = impatience.fcfs_fluid_wait(load, patience), f"{_PAPER_LIMITS}, section 4"
    yield TheoryValue("waiting of served jobs, w", "fcfs", wait, "time", "H(w) = 1-1/ρ", source, "limit")
    yield from _limit("lcfs", lcfs, "1/ρ", "(1-1/ρ)/θ", "section 4.1")
    if not sizes.has_atoms:
        yield from _by_size(scenario, patience)


def _by_size(scenario: Scenario, patience: Law) -> Iterator[TheoryValue]:
    """What the threshold τ of sizes gives: the limit of SRPT, bounds for every policy, and system L."""
    load, sizes = scenario.load, scenario.sizes
    threshold, srpt = impatience.srpt_threshold(load, sizes), impatience.srpt_limit(load, sizes, patience)
    source, equation = f"{_PAPER_LIMITS}, (1)", "E[S; S≤τ] = E[S]/ρ"
    yield TheoryValue("largest size served, τ", "srpt", threshold, "time", equation, source, "limit")
    yield from _limit("srpt", srpt, f"G(τ), {equation}", "(1-G(τ))/θ", "Theorem 2")
    source, lost = "the work of served jobs fits into n servers", srpt.abandonment
    yield TheoryValue("P[abandon]", "any", lost, "probability", "1 - G(τ)", source, "bound")
    if impatience.hazard_trend(patience) == "constant" and scenario.clock == "queue":
        formula, unseen = "P[abandon]/θ ≥ (1-G(τ))/θ", f"{source}, and the policy does not see patience"
        yield TheoryValue("mean waiting", "any", lost * patience.mean, "time", formula, unseen, "bound")
    loss, source = impatience.loss_priority_class1_loss(scenario.servers), f"{_PAPER_LIMITS}, section 3.1"
    yield TheoryValue("P[loss] of class 1", "loss-priority", loss, "probability", "B(n,n)", source, "exact")
    served = srpt.throughput * (1.0 - loss)
    formula = "G(τ)·(1-B(n,n))"
    yield TheoryValue("throughput/λ of class 1", "loss-priority", served, "ratio", formula, source, "exact")


def _limit(
    policy: str, limit: impatience.ManyServerLimit, throughput: str, waiting: str, place: str
) -> Iterator[TheoryValue]:
    source = f"{_PAPER_LIMITS}, {place}"
    yield TheoryValue("throughput/λ", policy, limit.throughput, "ratio", throughput, source, "limit")
    lost, complement = limit.abandonment, f"1 - {throughput}"
    yield TheoryValue("P[abandon]", policy, lost, "probability", complement, source, "limit")
    if limit.mean_waiting is not None:
        yield TheoryValue("mean waiting", policy, limit.mean_waiting, "time", waiting, source, "limit")
