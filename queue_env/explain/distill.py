"""Rules of few parameters that do nearly what a policy does in the states that it visits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from queue_env.explain.law import AnchorLaw
from queue_env.explain.states import States
from queue_env.network import Network

__all__ = ["FORMS", "Distilled", "Form", "distill"]

FloatArray: TypeAlias = NDArray[np.float64]

_FEATURES = ("anchor_size", "others_work", "anchor_remaining", "next_remaining")
_WRITTEN_OUT = 20.0  # powers of e up to this are numbers that say something
_RIDGE = 1e-6  # keeps the weights finite where a rule can have every rate right


@dataclass(frozen=True)
class Form:
    """A form that rules can have.

    Attributes:
        start: parameters from which the fit begins, for a number of servers, near a rule of the project.
        network: makes the rule of parameters.
        formula: writes it down: the logit of the rate, with z, b, r and p as in `words`.
        words: says what it comes to.
    """

    start: Callable[[int], FloatArray]
    network: Callable[[FloatArray], Network]
    formula: Callable[[FloatArray], str]
    words: Callable[[FloatArray], str]


@dataclass(frozen=True, eq=False)
class Distilled:
    """A rule that was fitted.

    Attributes:
        form: its name in `FORMS`.
        parameters: of the form, shape (parameters,).
        network: the rule.
        r2: share of the variance of the rates that it explains; None where they do not vary.
        difference: mean absolute difference of the rates.
        decides: whether its rate is above 1/2 in some of the states, and below in others.
    """

    form: str
    parameters: FloatArray
    network: Network
    r2: float | None
    difference: float
    decides: bool

    @property
    def formula(self) -> str:
        """The rule in one line."""
        return FORMS[self.form].formula(self.parameters)

    @property
    def words(self) -> str:
        """What the rule comes to."""
        return FORMS[self.form].words(self.parameters) if self.decides else "its rate is never on both sides of 1/2"


def distill(law: AnchorLaw, states: States, form: str, servers: int) -> Distilled:
    """Fit a rule to a law by the cross-entropy of the rates; every state weighs the same, so what is frequent counts.

    Args:
        law: to be imitated.
        states: that its policy has visited.
        form: a key of `FORMS`.
        servers: number of servers, for a start.
    """
    made, wanted, seen = FORMS[form], law.rates(states.features), states.columns(_FEATURES)

    def loss(parameters: FloatArray) -> float:
        logits = made.network(parameters).logits(seen)
        entropy = np.mean(np.logaddexp(0.0, logits) - wanted * logits)
        return float(entropy) + _RIDGE * float(parameters @ parameters)

    parameters = np.asarray(minimize(loss, made.start(servers), method="BFGS").x, np.float64)
    network = made.network(parameters)
    found, variance = network.rates(seen), float(np.var(wanted))
    r2 = 1 - float(np.mean((found - wanted) ** 2)) / variance if variance > 0 else None
    decides = r2 is not None and bool(found.min() < 0.5 < found.max())
    return Distilled(form, parameters, network, r2, float(np.mean(np.abs(found - wanted))), decides)


# ---- one logistic rule ---------------------------------------------------------------------------


def _logistic_start(servers: int) -> FloatArray:
    return np.array([3.0 * math.log(max(servers - 1, 1)), 0.9, -3.0, 0.0])


def _logistic_network(parameters: FloatArray) -> Network:
    constant, size, work, remaining = parameters.tolist()
    return Network(_FEATURES, (np.array([[size, work, remaining, -remaining]]),), (np.array([constant]),))


def _logistic_formula(parameters: FloatArray) -> str:
    constant, size, work, remaining = parameters.tolist()
    return _sum(constant, (size, "ln(1+z)"), (work, "ln(1+b)"), (remaining, "ln((1+r)/(1+p))"))


def _logistic_words(parameters: FloatArray) -> str:
    constant, size, work, remaining = parameters.tolist()
    if work >= 0:
        return "the rate does not fall with the others' work"
    factor, power, other = _power_of_e(-constant / work), -size / work, -remaining / work
    return f"rate above 1/2 where 1+b < {factor} (1+z)^{power:.2g} ((1+r)/(1+p))^{other:.2g}"


# ---- two switches --------------------------------------------------------------------------------


def _either_start(servers: int) -> FloatArray:
    return np.array([3.0, 4.0, 1.5 * math.log(max(servers - 1, 1)), 0.45, -1.5, 4.0, 0.0, -1.5])


def _either_network(parameters: FloatArray) -> Network:
    constant, low, at, size, work, near, place, remaining = parameters.tolist()
    hidden = np.array([[size, work, 0.0, 0.0], [0.0, 0.0, remaining, -remaining]])
    return Network(_FEATURES, (hidden, np.array([[low, near]])), (np.array([at, place]), np.array([constant])))


def _either_formula(parameters: FloatArray) -> str:
    constant, low, at, size, work, near, place, remaining = parameters.tolist()
    first = _sum(at, (size, "ln(1+z)"), (work, "ln(1+b)"))
    second = _sum(place, (remaining, "ln((1+r)/(1+p))"))
    return _sum(constant, (low, f"tanh({first})"), (near, f"tanh({second})"))


def _either_words(parameters: FloatArray) -> str:
    constant, low, at, size, work, near, place, remaining = parameters.tolist()
    # A switch may be written with both signs turned; here it is on where work is low, or little remains.
    low, near = math.copysign(1.0, -work) * low, math.copysign(1.0, -remaining) * near
    both, first, second, none = (
        1 / (1 + math.exp(-(constant + i * low + j * near))) for i, j in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    )
    return (
        f"A: the others' work is low, 1+b < {_power_of_e(-at / work)} (1+z)^{-size / work:.2g}; "
        f"B: the anchor is nearly done, 1+r < {_power_of_e(-place / remaining)} (1+p); "
        f"far from both limits the rate is {both:.2f} with A and B, {first:.2f} with A only, {second:.2f} with B only, "
        f"{none:.2f} with neither"
    )


def _power_of_e(exponent: float) -> str:
    """Write e to a power, which has no float where a rule hardly depends on what it is a limit of."""
    return f"{math.exp(exponent):.3g}" if abs(exponent) < _WRITTEN_OUT else f"e^{exponent:.3g}"


def _sum(constant: float, *terms: tuple[float, str]) -> str:
    """Write a sum of terms with their factors."""
    parts = [f"{constant:.3g}", *(f"{'-' if factor < 0 else '+'} {abs(factor):.3g} {term}" for factor, term in terms)]
    return " ".join(parts)


FORMS = {
    "either": Form(_either_start, _either_network, _either_formula, _either_words),
    "logistic": Form(_logistic_start, _logistic_network, _logistic_formula, _logistic_words),
}
"""Forms of rules by name: two switches, that of `backlog-split` and that of `srpt`; or one logistic rule of both."""
