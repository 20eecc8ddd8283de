"""Load regime and asymptotic lower bound on the tail of the response time.

[D] is Li, Harchol-Balter and Scheller-Wolf, "DynaSPLIT: strong tail-optimal scheduling for the M/G/n with
heavy-tailed job sizes".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from queue_env.distributions.checks import refuse
from queue_env.theory.checks import times

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from queue_env.scenarios import Scenario

Regime = Literal["lower", "high", "overload"]

_ROUNDING = 1e-12


def regime(scenario: Scenario) -> Regime:
    """Return "lower" if δ > 1, "high" if 0 < δ ≤ 1, "overload" if ρ ≥ 1, where δ = n(1-ρ).

    At lower load a whole server is to spare. A spare capacity that exceeds 1 by no more than rounding
    (10^-12) counts as 1.

    Source: [D], section 1.1.
    """
    if scenario.load >= 1.0:
        return "overload"
    return "lower" if scenario.spare > 1.0 + _ROUNDING else "high"


def tail_lower_bound(scenario: Scenario, t: ArrayLike) -> NDArray[np.float64]:
    """Return F̄(ct) with c = min(1, δ): no policy's P[T>t] is asymptotically smaller, shape of `t`.

    At lower load (c = 1) this is P[S>t] and holds for every t. At high load it is P[S>δt], holds as t→∞, and
    is derived for regularly varying sizes.

    Args:
        scenario: the model; load below 1, without patience.
        t: times [in the unit of the sizes], at least 0.

    Raises:
        ValueError: the load is 1 or more, jobs may abandon, or t is out of range.

    Source: [D], section 2.2, (6); [D], section 1.1 for lower load.
    """
    if regime(scenario) == "overload":
        refuse("tail_lower_bound", "load of the scenario", "below 1", scenario.load)
    if scenario.patience is not None:
        refuse("tail_lower_bound", "patience of the scenario", "None (no job abandons)", scenario.patience)
    return np.asarray(scenario.sizes.tail(scenario.c * times("tail_lower_bound", "t", t)))
