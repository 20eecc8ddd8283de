"""Results with known laws, made without the simulator: response times are handed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.by_size import size_edges
from queue_env.comparison import Comparison
from queue_env.distributions import law
from queue_env.kernel.layout import STATS
from queue_env.result import Result
from queue_env.scenarios import scenario
from queue_env.tail import bin_edges

ROWS, JOBS = 10, 20_000


def histogram(values: NDArray[np.float64], edges: NDArray[np.float64] | None = None) -> NDArray[np.int64]:
    edges = bin_edges() if edges is None else edges
    bins = len(edges) - 1
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, bins - 1)
    return np.stack([np.bincount(row, minlength=bins) for row in places])


def made_result(
    policy: str,
    responses: NDArray[np.float64],
    drawn: NDArray[np.float64],
    abandoned: int = 0,
    present: int = 0,
    **changes: Any,
) -> Result:
    """A result of response times and sizes of shape (rows, jobs); `abandoned` (of size 1), `present` are per row."""
    rows, jobs = responses.shape
    slowdowns, lost = responses / drawn, np.ones((rows, abandoned))
    stats = np.zeros(rows, STATS)
    for name, values in (("response", responses), ("slowdown", slowdowns)):
        stats[f"{name}_sum"] = values.sum(axis=1)
        stats[f"{name}_square_sum"] = (values**2).sum(axis=1)
        stats[f"{name}_max"] = values.max(axis=1)
    stats["waiting_sum"] = (responses - drawn).sum(axis=1)
    stats["served"], stats["abandoned"], stats["present"] = jobs, abandoned, present
    stats["counted"] = jobs + abandoned + present
    fields: dict[str, Any] = {
        "policy": policy,
        "scenario": None,
        "servers": 2,
        "spare": 0.4,
        "load": 0.8,
        "seed": 0,
        "jobs": int(stats["counted"].sum()),
        "simulated": int(stats["counted"].sum()),
        "streams": rows,
        "seconds": 0.5,
        "interrupted": False,
        "sizes": law({"law": "exponential", "mean": 1.0}),
        "stats": stats,
        "response_counts": histogram(responses),
        "slowdown_counts": histogram(slowdowns),
        "size_counts": np.stack([histogram(drawn, size_edges()), histogram(lost, size_edges())], axis=1),
        "window": np.full(rows, 1000.0),
        "number_area": stats["response_sum"],
        "busy_area": np.full(rows, 1600.0),
        "served_in_window": stats["served"].astype(np.float64),
        "little_gaps": np.zeros(rows),
    }
    return Result(**{**fields, **changes})


def made_comparison(
    factors: Mapping[str, float], name: str = "high-load-2", scale: float = 1.0, **changes: Any
) -> Comparison:
    """Policies with T = factor·S/c on the same jobs, so that R(t) = P[S > ct/factor]/P[S > ct] is known."""
    model = scenario(name)
    sizes = model.sizes.scaled(scale)
    model = model.replace(sizes=sizes.spec())
    drawn = sizes.sample(np.random.default_rng(1), ROWS * JOBS).reshape(ROWS, JOBS)
    fields = {
        "scenario": model.to_dict(),
        "servers": model.servers,
        "spare": model.spare,
        "load": model.load,
        "sizes": sizes,
        **changes,
    }
    c = min(1.0, model.spare) if model.spare > 0 else 1.0
    return Comparison(made_result(policy, factor * drawn / c, drawn, **fields) for policy, factor in factors.items())
