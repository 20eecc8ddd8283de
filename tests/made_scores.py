"""Scores with known numbers, made without the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from made_results import made_comparison
from numpy.typing import NDArray

from queue_env.scenarios import Scenario, scenario
from queue_env.scoring.figure_data import JoinedTail, Points
from queue_env.scoring.score import Score
from queue_env.tail import Estimate, jackknife

REPLICATIONS = 10


def estimate_of(values: Sequence[float], spread: float = 0.01) -> Estimate:
    """An estimate whose replications differ by multiples of `spread`, the same for every policy and column."""
    noise = spread * (np.arange(REPLICATIONS) - (REPLICATIONS - 1) / 2)
    rows = 1 + np.asarray(values) + noise[:, None] * np.linspace(1, 2, len(values))
    sums = np.column_stack([np.ones(REPLICATIONS), rows])
    return jackknife(sums, lambda part: part[..., 1:] / part[..., :1] - 1)


def made_score(policy: str, value: float, source: str | Scenario = "high-load-2", **changes: Any) -> Score:
    """A score of `value` whose normalised tail at 1, 10 and 100 is half of it, once and twice that."""
    model = scenario(source)
    plain = made_comparison({policy: 1.0}, model.name)[policy]
    estimate = None if model.patience is not None else estimate_of([1.0, value, value / 2, value, 2 * value])
    numbers = [np.full(5, np.nan)] * 3 if estimate is None else [estimate.value, *estimate.ends()]
    count = 0 if estimate is None else 3
    tail, low, high = (part[2 : 2 + count] for part in numbers)
    fields: dict[str, Any] = {
        "policy": policy,
        "scenario": model.to_dict(),
        "score": float(numbers[0][1]),
        "low": float(numbers[1][1]),
        "high": float(numbers[2][1]),
        "t": model.sizes.mean * 10.0 ** np.arange(count),
        "normalised_tail": tail,
        "tail_low": low,
        "tail_high": high,
        "curve": np.column_stack([model.sizes.mean * 10.0 ** np.arange(count), tail, low, high]),
        "plain": plain,
        "jobs": 1000,
        "seconds": 0.5,
        "seed": 0,
        "reached": True,
        "estimate": estimate,
    }
    return Score(**fields | changes)


def made_points(t: NDArray[np.float64], value: NDArray[np.float64]) -> Points:
    return Points(t=t, tail=value / 10, value=value, low=0.9 * value, high=1.1 * value)


def made_tail(policy: str, height: float, growth: float = 0.0, reached: bool = True) -> JoinedTail:
    """R(t) = height·t^growth, from a plain run up to 100, and at half-decades up to 10^4."""
    near, far = np.logspace(-1, 2, 73), 10 ** np.arange(0, 4.25, 0.5)
    return JoinedTail(
        policy=policy,
        plain=made_points(near, height * near**growth),
        decomposition=made_points(far, height * far**growth),
        reached=reached,
    )
