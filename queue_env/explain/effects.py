"""How much the anchor's rate depends on each feature, over the states that are visited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.explain.law import AnchorLaw
from queue_env.explain.states import States

__all__ = ["Effect", "effects"]

FloatArray: TypeAlias = NDArray[np.float64]

_STEP = 1e-4
_SEED = 0  # of the shuffling


@dataclass(frozen=True)
class Effect:
    """What one feature does.

    Attributes:
        feature: its name.
        importance: mean absolute change of the rate where the feature has its value from another state, at random.
        slope: mean derivative of the logit by the feature; None for a law that is no network.
        spread: standard deviation of the feature.
    """

    feature: str
    importance: float
    slope: float | None
    spread: float


def effects(law: AnchorLaw, states: States) -> list[Effect]:
    """Return the effects of the features of a law, the most important first.

    Source of the importance: L. Breiman, Random forests (2001), section 10, there for the error, here for the rate.
    """
    rng = np.random.default_rng(_SEED)
    values = states.columns(law.features)
    found = [_effect(law, values, i, rng) for i in range(len(law.features))]
    return sorted(found, key=lambda effect: -effect.importance)


def _effect(law: AnchorLaw, values: FloatArray, i: int, rng: np.random.Generator) -> Effect:
    other = values.copy()
    other[:, i] = rng.permutation(other[:, i])
    importance = float(np.mean(np.abs(law.of(other) - law.of(values))))
    slope = None
    if law.network is not None:
        step = np.zeros(values.shape[1])
        step[i] = _STEP
        rise = law.network.logits(values + step) - law.network.logits(values - step)
        slope = float(np.mean(rise)) / (2 * _STEP)
    return Effect(law.features[i], importance, slope, float(np.std(values[:, i])))
