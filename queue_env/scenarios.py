"""Scenarios: the queue, its jobs and its load; eight of them have names."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from queue_env.arrivals import arrival_process, suggestion
from queue_env.distributions import Law, law
from queue_env.distributions.checks import positive, refuse
from queue_env.workload import Stream, check_servers

__all__ = ["CLOCKS", "SCENARIOS", "Scenario", "scenario"]

CLOCKS = ("queue", "fractional", "sojourn")

_EXPONENTIAL = {"law": "exponential", "mean": 1.0}

SCENARIOS: dict[str, dict[str, Any]] = {
    "high-load-2": {"servers": 2, "load": 0.8, "sizes": {"law": "pareto", "alpha": 1.5, "mean": 1.0}},
    "high-load-4": {"servers": 4, "load": 0.9, "sizes": {"law": "pareto", "alpha": 2.0, "mean": 1.0}},
    "high-load-10": {"servers": 10, "load": 0.95, "sizes": {"law": "pareto", "alpha": 1.5, "mean": 1.0}},
    "low-load-4": {"servers": 4, "load": 0.6, "sizes": {"law": "pareto", "alpha": 1.5, "mean": 1.0}},
    "light-2": {"servers": 2, "load": 0.8, "sizes": _EXPONENTIAL},
    "impatient-100": {"servers": 100, "load": 1.2, "sizes": _EXPONENTIAL, "patience": _EXPONENTIAL},
    "impatient-dhr-100": {
        "servers": 100,
        "load": 1.5,
        "sizes": {"law": "weibull", "shape": 0.5, "mean": 1.0},
        "patience": {"law": "weibull", "shape": 0.4, "mean": 1.0},
    },
    "impatient-dhr-light-100": {
        "servers": 100,
        "load": 1.5,
        "sizes": {"law": "weibull", "shape": 2.0, "mean": 1.0},
        "patience": {"law": "weibull", "shape": 0.4, "mean": 1.0},
    },
}
"""The named scenarios as plain data; what a mapping leaves out has the default of `Scenario`."""


@dataclass(frozen=True)
class Scenario:
    """A queue of `servers` servers of speed one, its load, and the laws of its jobs.

    Laws and arrivals may be given as mappings. Scenarios compare by value.

    Attributes:
        name: a label, for people; nothing depends on it.
        servers: number of servers n, an integer from 1 to MAX_SERVERS.
        load: ρ = λE[S]/n > 0; 1 or more only with patience.
        sizes: law of the sizes S, of finite mean.
        patience: law of the patience, or None where all jobs wait for ever.
        arrivals: the shape of the arrival process (see `arrival_process`); its rate follows from the load.
        clock: what uses up patience: "queue" (time with rate 0), "fractional" (time, at speed 1 - rate) or
            "sojourn" (all time).

    Raises:
        ValueError: names the field, its value and what is allowed.
    """

    name: str
    servers: int
    load: float
    sizes: Law
    patience: Law | None = None
    arrivals: Mapping[str, Any] = field(default_factory=lambda: {"process": "poisson"}, hash=False)
    clock: str = "queue"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            refuse("scenario", "name", "a string", self.name)
        patience = None if self.patience is None else _law("patience", self.patience)
        clean = {
            "servers": check_servers(self.servers),
            "load": positive("scenario", "load", self.load),
            "sizes": _law("sizes", self.sizes),
            "patience": patience,
            "arrivals": _plain(self.arrivals),
        }
        for key, value in clean.items():
            object.__setattr__(self, key, value)
        if self.load >= 1 and self.patience is None:
            refuse("scenario", "load", "< 1 without patience", self.load)
        if not np.isfinite(self.sizes.mean):
            refuse("scenario", "sizes", "a law of finite mean", self.sizes.spec())
        if self.clock not in CLOCKS:
            refuse("scenario", "clock", f"one of {', '.join(CLOCKS)}", self.clock)
        arrival_process(self.arrivals, self.arrival_rate)

    @property
    def arrival_rate(self) -> float:
        """Jobs per unit of time, λ = ρn/E[S]."""
        return self.load * self.servers / self.sizes.mean

    @property
    def spare(self) -> float:
        """Spare capacity δ = n(1-ρ), in servers; not positive in overload."""
        return self.servers * (1 - self.load)

    @property
    def c(self) -> float:
        """The c = min(1, δ) of the lower bound F̄(ct) on the tail of response time; no bound where it is <= 0.

        Source: Z. Li, M. Harchol-Balter, A. Scheller-Wolf, "DynaSPLIT: strong tail-optimal scheduling for the
        M/G/n with heavy-tailed job sizes", equation 6 (high load); at lower load no job beats its size.
        """
        return min(1.0, self.spare)

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        """The endless stream of jobs of a seed."""
        return Stream(arrival_process(self.arrivals, self.arrival_rate), self.sizes, self.patience, seed)

    def replace(self, **overrides: Any) -> Scenario:
        """This scenario with other values in some of its fields; the name stays unless it is given.

        Raises:
            ValueError: there is no such field, or its value is not allowed.
        """
        return Scenario.from_dict({**self.to_dict(), **overrides})

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data: `Scenario.from_dict` gives the scenario back, through JSON too."""
        return {
            "name": self.name,
            "servers": self.servers,
            "load": self.load,
            "sizes": self.sizes.spec(),
            "patience": None if self.patience is None else self.patience.spec(),
            "arrivals": copy.deepcopy(self.arrivals),
            "clock": self.clock,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Scenario:
        """Build a scenario from its fields; `name` is "custom" by default.

        Raises:
            ValueError: a field is unknown or missing, or its value is not allowed.
        """
        known = [item.name for item in fields(cls)]
        for key in values:
            if key not in known:
                refuse("scenario", "fields", f"among {', '.join(known)}{suggestion(key, known)}", key)
        missing = {"servers", "load", "sizes"} - set(values)
        if missing:
            refuse("scenario", "fields", f"complete (missing: {', '.join(sorted(missing))})", list(values))
        return cls(**{"name": "custom", **values})


def scenario(base: str | Mapping[str, Any] | Scenario, **overrides: Any) -> Scenario:
    """A named scenario, or one given by its fields, with other values in some of its fields.

    Args:
        base: a name among `SCENARIOS`, a mapping with fields of `Scenario`, or a scenario.
        **overrides: fields of `Scenario`: `load=0.9`, `sizes={"law": "pareto", "alpha": 2, "mean": 1}`.

    Raises:
        ValueError: the name or a field is unknown, or a value is not allowed.
    """
    if isinstance(base, Scenario):
        return base.replace(**overrides)
    if isinstance(base, Mapping):
        return Scenario.from_dict({**base, **overrides})
    if not isinstance(base, str) or base not in SCENARIOS:
        refuse("scenario", "name", f"one of {', '.join(SCENARIOS)}{suggestion(base, SCENARIOS)}", base)
    return Scenario.from_dict({"name": base, **SCENARIOS[base], **overrides})


def _law(name: str, spec: Mapping[str, Any] | Law) -> Law:
    try:
        return law(spec)
    except ValueError as error:
        raise ValueError(f"scenario: {name}: {error}") from error


def _plain(arrivals: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a mapping as JSON gives it back, so that scenarios compare and travel by value."""
    try:
        return dict(json.loads(json.dumps(dict(arrivals))))
    except (TypeError, ValueError):
        refuse("scenario", "arrivals", 'a mapping fit for JSON, such as {"process": "poisson"}', arrivals)
