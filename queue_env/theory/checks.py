"""Checks of arguments that the closed forms share; each raises one ValueError before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from queue_env.distributions.checks import positive, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from queue_env.distributions import Law

MAX_SERVERS = 1_000_000
"""The sums over servers take memory and time in proportion to their number."""


def whole_servers(owner: str, servers: int) -> int:
    """Return `servers`; ValueError unless it is a whole number from 1 to MAX_SERVERS."""
    if isinstance(servers, bool) or not hasattr(servers, "__index__") or not 1 <= servers <= MAX_SERVERS:
        refuse(owner, "servers", f"a whole number from 1 to {MAX_SERVERS}", servers)
    return servers


def times(owner: str, argument: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return `value` as a float64 array; ValueError unless every element is finite and >= 0."""
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array) & (array >= 0.0)):
        refuse(owner, argument, "finite numbers >= 0", value)
    return array


def single_server_load(owner: str, arrival_rate: float, sizes: Law) -> float:
    """Return ρ = arrival_rate·E[S] of one server of speed 1; ValueError unless 0 < ρ < 1."""
    load = positive(owner, "arrival_rate", arrival_rate) * sizes.mean
    if not load < 1.0:
        refuse(owner, "arrival_rate", f"below 1/E[S] = {1.0 / sizes.mean:.6g}", arrival_rate)
    return load


def many_server_rates(owner: str, arrival_rate: float, service_rate: float, servers: int) -> tuple[float, float, int]:
    """Return λ, μ and n; ValueError unless λ and μ are finite and > 0 and n is a whole number >= 1."""
    rate = positive(owner, "arrival_rate", arrival_rate)
    return rate, positive(owner, "service_rate", service_rate), whole_servers(owner, servers)


def overload(owner: str, load: float) -> float:
    """Return ρ; ValueError unless it is finite and above 1."""
    rho = positive(owner, "load", load)
    if rho <= 1.0:
        refuse(owner, "load", "above 1 (overload)", load)
    return rho
