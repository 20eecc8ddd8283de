"""Rules of one's own that the tests of tails run: an index, a rate of the anchor, and allocations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def original_size(size: float, remaining: float, number: float, parameters: Floats) -> float:
    return size


def size_times_remaining(size: float, remaining: float, number: float, parameters: Floats) -> float:
    return size * remaining


def log_rate(size: float, remaining: float, backlog: float, jobs: float, spare: float, parameters: Floats) -> float:
    return float(min(1.0, spare - spare / (2.0 + np.log1p(size))))


def fair_shares(
    sizes: Floats, remaining: Floats, ages: Floats, servers: int, parameters: Floats, rates: Floats
) -> float:
    rates[:] = min(1.0, servers / max(len(rates), 1))
    return np.inf


def all_but_the_last_three(
    sizes: Floats, remaining: Floats, ages: Floats, servers: int, parameters: Floats, rates: Floats
) -> float:
    """FCFS while more than three jobs are present, else nothing."""
    if len(rates) > 3:
        rates[:servers] = 1.0
    return np.inf


def half_idle(sizes: Floats, remaining: Floats, ages: Floats, servers: int, parameters: Floats, rates: Floats) -> float:
    """FCFS at half of the speed, which is too little."""
    for slot in range(min(servers, len(rates))):
        rates[slot] = 0.5
    return np.inf
