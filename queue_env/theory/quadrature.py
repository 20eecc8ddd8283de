"""Adaptive quadrature for means over a size law, from light tails to tails with an index just above 1.

All integrals run over panels that follow the law's quantiles, so that one rule serves every scale: a panel
covers a factor of ten of probability, wherever that lies on the size axis.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from queue_env.distributions import Law

    Array = NDArray[np.float64]

RELATIVE_TOLERANCE = 1e-9
"""Error allowed for each panel, relative to the integral over it; smooth panels come out far better."""

LOWEST_DECADE = 20
"""Panels begin at the 10^-20 quantile: the sizes below it carry no weight in double precision."""

HIGHEST_DECADE = 300
"""Panels end at the size exceeded with probability 10^-300, the last that a law promises to give."""

_NODES = 12
_MAX_HALVINGS = 60
_MAX_PANELS = 1_000_000
_LOG_TEN = math.log(10.0)


def panel_integrals(integrand: Callable[[Array], Array], edges: Array) -> Array:
    """Integrate over each panel between neighbouring edges, halving panels until they are accurate.

    A panel is accepted when its Gauss-Legendre sum and the sum over its two halves agree to
    RELATIVE_TOLERANCE. A jump of the integrand is enclosed by repeated halving.

    Args:
        integrand: vectorised function, `(m,)` to `(m,)`, of one sign.
        edges: `(panels + 1,)` increasing.

    Returns:
        `(panels,)` integrals.

    Raises:
        ArithmeticError: the integrand is too rough (more than a million panels would be needed).
    """
    left, right = edges[:-1], edges[1:]
    owner = np.arange(left.size)
    total = np.zeros(left.size)
    coarse = _gauss(integrand, left, right)
    for _ in range(_MAX_HALVINGS):
        middle = 0.5 * (left + right)
        halves = _gauss(integrand, np.concatenate((left, middle)), np.concatenate((middle, right)))
        lower, upper = halves[: left.size], halves[left.size :]
        fine = lower + upper
        rough = np.abs(fine - coarse) > RELATIVE_TOLERANCE * np.abs(fine)
        np.add.at(total, owner[~rough], fine[~rough])
        if not rough.any():
            return total
        left, right = (
            np.concatenate((left[rough], middle[rough])),
            np.concatenate((middle[rough], right[rough])),
        )
        coarse = np.concatenate((lower[rough], upper[rough]))
        owner = np.concatenate((owner[rough], owner[rough]))
        if left.size > _MAX_PANELS:
            raise ArithmeticError(f"quadrature: {left.size} panels above tolerance {RELATIVE_TOLERANCE}")
    np.add.at(total, owner, coarse)
    return total


def expectation(law: Law, function: Callable[[Array], Array]) -> float:
    """Return E[function(S)] for a vectorised function of one sign that grows at most like x.

    A sum for a law of atoms. Else the integral over x = tail_quantile(e^-u) above the median and x =
    quantile(e^-v) below it, which needs no density. Above the 10^-300 quantile function(x)/x is taken as
    constant, which matters only for tails with an index below about 1.05.

    Args:
        law: the law of S.
        function: sizes `(m,)` to values `(m,)`.
    """
    if law.has_atoms:
        sizes, counts = np.unique(_atoms(law), return_counts=True)
        return float(function(sizes) @ counts / counts.sum())

    def above_median(u: Array) -> Array:
        return function(law.tail_quantile(np.exp(-u))) * np.exp(-u)

    def below_median(v: Array) -> Array:
        return function(law.quantile(np.exp(-v))) * np.exp(-v)

    body = panel_integrals(above_median, _log_decades(HIGHEST_DECADE)).sum()
    body += panel_integrals(below_median, _log_decades(LOWEST_DECADE)).sum()
    return float(body + _remainder(law, function))


def size_ladder(law: Law) -> Array:
    """Return increasing sizes between which a truncated moment is smooth enough for one panel.

    The atoms of a law of atoms, else the quantiles at 10^-k and 1-10^-k.
    """
    if law.has_atoms:
        return np.unique(_atoms(law))
    low = law.quantile(10.0 ** -np.arange(1.0, LOWEST_DECADE + 1))
    high = law.tail_quantile(10.0 ** -np.arange(1.0, HIGHEST_DECADE + 1))
    return np.unique(np.concatenate((low, high)))


def _atoms(law: Law) -> Array:
    """The equally likely values of a law of atoms."""
    spec = law.spec()
    return np.atleast_1d(np.asarray(spec["values"] if "values" in spec else spec["value"], dtype=np.float64))


def _remainder(law: Law, function: Callable[[Array], Array]) -> float:
    last = law.tail_quantile(np.array([10.0**-HIGHEST_DECADE]))
    mean_beyond = law.mean * law.residual_tail(last)
    return float((function(last) / last * mean_beyond)[0])


@cache
def _gauss_rule() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def _gauss(integrand: Callable[[Array], Array], left: Array, right: Array) -> Array:
    nodes, weights = _gauss_rule()
    width = right - left
    points = left[:, None] + width[:, None] * nodes
    result: Array = (integrand(points.ravel()).reshape(points.shape) @ weights) * width
    return result


def _log_decades(decades: int) -> Array:
    """Edges of -log(probability) from one half to 10^-decades."""
    return np.concatenate(([math.log(2.0)], _LOG_TEN * np.arange(1.0, decades + 1)))
