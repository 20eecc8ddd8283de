"""Policies by name and parameters: the one table of what they are, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeAlias

from queue_env.kernel import layout
from queue_env.network import network_file, network_policy, read_network, shipped_networks
from queue_env.user_policies import UserPolicy

PAPER_D = "Li, Harchol-Balter, Scheller-Wolf, DynaSPLIT (2026)"
PAPER_I = "On the SRPT scheduling discipline in many-server queues with impatient customers"
MARGINS = {"log": layout.LOG_MARGIN, "power": layout.POWER_MARGIN, "constant": layout.CONSTANT_MARGIN}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a policy.

    Attributes:
        name: as written in ``"policy:name=value"``.
        meaning: one line.
        default: the value when it is not given, or None for one that depends on the scenario (``meaning`` says how).
        low, high: the allowed range, ends excluded.
        words: the allowed words, for a parameter that is no number.
    """

    name: str
    meaning: str
    default: float | str | None = None
    low: float = 0.0
    high: float = math.inf
    words: tuple[str, ...] = ()

    def read(self, policy: str, value: object) -> float | str:
        """Check a value and return it as a number or word."""
        if self.words:
            if value not in self.words:
                raise ValueError(f"{policy}: {self.name}={value!r}, allowed: {', '.join(self.words)}")
            return str(value)
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if not self.low < number < self.high:
            allowed = f"a number above {self.low:g}" + (f" and below {self.high:g}" if self.high < math.inf else "")
            raise ValueError(f"{policy}: {self.name}={value!r}, allowed: {allowed}")
        return number


@dataclass(frozen=True)
class PolicyInfo:
    """What a reference policy is.

    Attributes:
        name: its name.
        law: the allocation rule in one line.
        source: where it is defined.
        kernel: the values of the kernel's ``SYSTEM`` record that select it.
        parameters: its parameters.
    """

    name: str
    law: str
    source: str
    kernel: Mapping[str, int] = field(hash=False)
    parameters: tuple[Parameter, ...] = ()


def _index(order: int, preemptive: bool, lossy: bool = False) -> dict[str, int]:
    return {"family": layout.INDEX, "order": order, "preemptive": int(preemptive), "lossy": int(lossy)}


def _anchor(rate_kind: int) -> dict[str, int]:
    return {"family": layout.ANCHOR, "order": layout.REMAINING, "preemptive": 1, "rate_kind": rate_kind}


_DELTA = Parameter("delta", "spare capacity; default n(1-load) of the scenario, or of the workload itself")
_TAU = Parameter("tau", "the class boundary; default, in overload: E[S; S<=tau] = E[S]/load")
_TABLE = (
    PolicyInfo(
        "fcfs",
        "the n earliest arrivals at rate 1; who is in service stays",
        "textbook",
        _index(layout.EARLIEST, False),
    ),
    PolicyInfo("lcfs", "latest arrival first, without preemption", "textbook", _index(layout.LATEST, False)),
    PolicyInfo("plcfs", "latest arrival first, with preemption", "textbook", _index(layout.LATEST, True)),
    PolicyInfo(
        "srpt",
        "the n smallest remaining sizes at rate 1",
        "Grosof, Scully, Harchol-Balter, SRPT for multiserver systems (2018)",
        _index(layout.REMAINING, True),
    ),
    PolicyInfo("psjf", "the n smallest original sizes, with preemption", "textbook", _index(layout.SIZE, True)),
    PolicyInfo("sjf", "the n smallest original sizes, without preemption", "textbook", _index(layout.SIZE, False)),
    PolicyInfo("ps", "every job at rate min(1, n/N)", "textbook", {"family": layout.SHARING}),
    PolicyInfo(
        "las",
        "least attained service first; jobs level with one another share",
        "textbook (foreground-background)",
        {"family": layout.LEVELS},
    ),
    PolicyInfo(
        "split",
        "one server runs the largest original size present, the others SRPT",
        f"{PAPER_D} §1",
        _anchor(layout.SPLIT),
    ),
    PolicyInfo(
        "thresh-split",
        "sizes above d to one server (FCFS), the rest to SRPT on n-1",
        f"{PAPER_D} §1",
        _anchor(layout.THRESHOLD),
        (Parameter("d", "the threshold; default: each server, large or small, gets the same load"),),
    ),
    PolicyInfo(
        "dynasplit",
        "the anchor at delta - margin(size), the n-1 smallest others at 1, the n-th at what is left",
        f"{PAPER_D} §3.1",
        _anchor(layout.DYNASPLIT),
        (
            _DELTA,
            Parameter(
                "margin",
                "log: delta/(shape+ln(1+z)); power: delta/2 (1+z)^-shape; constant: delta*shape",
                "log",
                words=tuple(MARGINS),
            ),
            Parameter("shape", "of the margin; default 2 (log), 0.5 (power), 0.25 (constant)"),
        ),
    ),
    PolicyInfo(
        "backlog-split",
        "as dynasplit, but the anchor at 1 while the others' work is below b z^kappa, else at 0",
        "this project",
        _anchor(layout.BACKLOG),
        (
            Parameter("b", "factor of the threshold", 1.0),
            Parameter("kappa", "exponent of the anchor's size", 0.3, low=-math.inf),
        ),
    ),
    PolicyInfo(
        "super-server",
        "SRPT on one server of speed n: a bound, not a policy of n servers",
        f"{PAPER_D} §2.2",
        _index(layout.REMAINING, True),
    ),
    PolicyInfo(
        "loss-priority",
        "no waiting room: sizes up to tau preempt larger ones; who cannot be served is lost",
        f"{PAPER_I}, system L",
        _index(layout.LOSS, True, lossy=True),
        (_TAU,),
    ),
    PolicyInfo(
        "two-class",
        "sizes up to tau preempt larger ones; within a class first come, first served, who is in service stays",
        f"{PAPER_I}, section 2: the two-class queue that SRPT collapses to",
        _index(layout.LOSS, True),
        (_TAU,),
    ),
)
POLICIES: dict[str, PolicyInfo] = {info.name: info for info in _TABLE}


@dataclass(frozen=True)
class Policy:
    """A policy with the parameters that were given for it; `label` names it in tables."""

    name: str
    parameters: Mapping[str, float | str] = field(default_factory=dict, hash=False)
    user: UserPolicy | None = None

    @property
    def label(self) -> str:
        """The policy as it can be written on a command line."""
        given = ",".join(f"{name}={_written(value)}" for name, value in self.parameters.items())
        return f"{self.name}:{given}" if given else self.name


def _written(value: float | str) -> str:
    """A parameter as short as it can be written without loss."""
    if isinstance(value, str):
        return value
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


OnePolicy: TypeAlias = "str | Mapping[str, Any] | Policy | UserPolicy"


def parse_policy(spec: OnePolicy) -> Policy:
    """Read a policy.

    Args:
        spec: a name with parameters, ``"thresh-split:d=10"`` or ``"backlog-split:b=1,kappa=0.3"``; a mapping,
            ``{"policy": "thresh-split", "d": 10}`` (or with the key ``name``); a learned policy, by the file of its
            network, ``"learned:FILE.json"``, or by its name if it comes with the package; or a policy made by
            `index_policy`, `anchor_policy` or `allocation_policy`.

    Raises:
        ValueError: the name, a parameter or a value is not allowed; says what is.
    """
    if isinstance(spec, Policy):
        return spec
    if isinstance(spec, UserPolicy):
        return Policy(spec.name, {}, spec)
    if isinstance(spec, str) and (file := network_file(spec)) is not None:
        network, training = read_network(file)
        return Policy(spec, {}, network_policy(network, name=spec, training=training))
    name, given = _split(spec)
    if name not in POLICIES:
        close = get_close_matches(name, POLICIES, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"policy={name!r} is not known; {hint}allowed: {', '.join(_allowed_names())}")
    known = {parameter.name: parameter for parameter in POLICIES[name].parameters}
    for key in given:
        if key not in known:
            allowed = ", ".join(known) or "none"
            raise ValueError(f"{name}: parameter {key!r} is not known, allowed: {allowed}")
    return Policy(name, {key: known[key].read(name, value) for key, value in given.items()})


def _allowed_names() -> list[str]:
    return [*POLICIES, *shipped_networks(), "learned:FILE.json"]


def _split(spec: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(spec, Mapping):
        given = dict(spec)
        key = "policy" if "policy" in given else "name"
        if key not in given:
            raise ValueError(f"policy={spec!r}, allowed: a mapping with the key 'policy' or 'name'")
        return str(given.pop(key)), given
    if not isinstance(spec, str):
        raise ValueError(
            f"policy={spec!r}, allowed: a name with parameters such as 'thresh-split:d=2', a mapping, or a "
            "policy made by index_policy, anchor_policy or allocation_policy"
        )
    name, _, rest = spec.strip().partition(":")
    given = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"policy={spec!r}: {part!r} is not of the form name=value")
        if key.strip() in given:
            raise ValueError(f"policy={spec!r}: {key.strip()!r} is given twice")
        given[key.strip()] = value.strip()
    return name.strip(), given
