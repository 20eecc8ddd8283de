"""How the learning rate changes."""

from __future__ import annotations

from stable_baselines3.common.utils import LinearSchedule

__all__ = ["falling"]


def falling(ends: tuple[float, float]) -> LinearSchedule:
    """Return the schedule that goes linearly from the first rate to the second."""
    return LinearSchedule(*ends, end_fraction=1.0)
