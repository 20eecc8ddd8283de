"""The `info` of a step: from the kernel's outcomes to dictionaries, for one environment and for B."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.config import EnvConfig
from queue_env.kernel import env_layout as layout

__all__ = ["info_of_one", "infos_of_all"]

_NUMBERS = (
    ("dt", layout.ELAPSED, float),
    ("time", layout.TIME, float),
    ("completions", layout.COMPLETIONS, int),
    ("abandonments", layout.ABANDONMENTS, int),
    ("response_time", layout.RESPONSE, float),
)


def summary_of(config: EnvConfig, outcome: list[float]) -> dict[str, Any]:
    """Return what an episode has been like: counts, means over the jobs served, time averages, total costs."""
    served, abandoned, response, slowdown, longest, area = outcome[layout.EPISODE : layout.EPISODE + 6]
    time = outcome[layout.TIME]
    return {
        "served": int(served),
        "abandoned": int(abandoned),
        "mean_response": response / served if served else float("nan"),
        "mean_slowdown": slowdown / served if served else float("nan"),
        "max_response": longest,
        "mean_number": area / time if time > 0 else 0.0,
        "cost": {term.name: outcome[layout.EPISODE_COSTS + i] for i, term in enumerate(config.terms)},
    }


def info_of_one(config: EnvConfig, outcome: list[float], rates: NDArray[np.float64]) -> dict[str, Any]:
    """Return the info of one environment.

    Args:
        config: its arguments.
        outcome: its outcomes, as a list.
        rates: `(slots,)` the executed allocation.
    """
    info: dict[str, Any] = {name: kind(outcome[column]) for name, column, kind in _NUMBERS}
    info["cost"] = {term.name: outcome[layout.COSTS + i] for i, term in enumerate(config.terms)}
    if config.episode == "big-job":
        info["weight"] = outcome[layout.WEIGHT]
    if config.allocation_in_info:
        info["allocation"] = rates.copy()
    reason = int(outcome[layout.REASON])
    if reason != layout.NO_REASON:
        info["reason"] = layout.REASONS[reason]
        info["summary"] = summary_of(config, outcome)
    return info


def infos_of_all(
    config: EnvConfig,
    outcomes: NDArray[np.float64],
    rates: NDArray[np.float64],
    ended: NDArray[np.bool_],
    chosen: NDArray[np.bool_] | None = None,
    begun: NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """Return the infos of B environments, as Gymnasium's `VectorEnv` collects them.

    Args:
        config: their arguments.
        outcomes: `(B, OUTCOMES)`.
        rates: `(B, slots)` executed allocations.
        ended: `(B,)` whose episode is over, among the chosen.
        chosen: `(B,)` who has an info; None for all.
        begun: `(B,)` whose episode has just begun, so that no allocation has been executed.
    """
    # A few copies of several columns are faster than one of each.
    floats = outcomes.T[: layout.COSTS + len(config.terms)].copy()
    counts = outcomes.T[layout.COMPLETIONS : layout.ABANDONMENTS + 1].astype(int)
    masks = np.empty((len(_NUMBERS) + len(config.terms) + 3, len(outcomes)), np.bool_)
    masks[:] = True if chosen is None else chosen
    if chosen is not None:
        floats[:, ~chosen], counts[:, ~chosen] = 0.0, 0
    unused = iter(masks)

    def put(into: dict[str, Any], name: str, values: Any) -> None:
        into[name], into[f"_{name}"] = values, next(unused)

    infos: dict[str, Any] = {}
    for name, column, kind in _NUMBERS:
        put(infos, name, floats[column] if kind is float else counts[column - layout.COMPLETIONS])
    cost: dict[str, Any] = {}
    for i, term in enumerate(config.terms):
        put(cost, term.name, floats[layout.COSTS + i])
    put(infos, "cost", cost)
    if config.episode == "big-job":
        put(infos, "weight", floats[layout.WEIGHT])
    if config.allocation_in_info:
        executed = rates.copy()
        for others in (None if chosen is None else ~chosen, begun):
            if others is not None and np.count_nonzero(others):
                executed[others] = 0.0
        put(infos, "allocation", executed)
    if np.count_nonzero(ended):
        infos |= _ends(config, outcomes, ended)
    return infos


def _ends(config: EnvConfig, outcomes: NDArray[np.float64], ended: NDArray[np.bool_]) -> dict[str, Any]:
    reasons = np.full(len(ended), None, dtype=object)
    columns: dict[str, Any] = {}
    for b in np.flatnonzero(ended).tolist():
        outcome = outcomes[b].tolist()
        reasons[b] = layout.REASONS[int(outcome[layout.REASON])]
        _collect(columns, summary_of(config, outcome), b, len(ended))
    return {"reason": reasons, "_reason": ended.copy(), "summary": columns, "_summary": ended.copy()}


def _collect(into: dict[str, Any], values: dict[str, Any], b: int, count: int) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            _collect(into.setdefault(name, {}), value, b, count)
        else:
            into.setdefault(name, np.zeros(count, dtype=type(value)))[b] = value
        into.setdefault(f"_{name}", np.zeros(count, dtype=np.bool_))[b] = True
