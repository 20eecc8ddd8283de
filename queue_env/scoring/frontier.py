"""What policies give up at one time for what they gain at a later one: the normalised tail at two times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queue_env.distributions.checks import positive, refuse
from queue_env.scenarios import Scenario
from queue_env.scoring.curve import check_t_grid, tail_curve
from queue_env.tail import Interval

__all__ = ["FrontierPoint", "check_two_times", "frontier_point"]


@dataclass(frozen=True, kw_only=True)
class FrontierPoint:
    """The normalised tail R(t) = P[T > t]/F̄(ct) under one policy at two times, with 95 % intervals.

    Attributes:
        policy: label.
        near: R at the earlier time.
        far: R at the later one.
        reached: whether the intervals are as narrow as was asked for.
    """

    policy: str
    near: Interval
    far: Interval
    reached: bool

    def beats(self, other: FrontierPoint) -> bool:
        """Whether it is below another at both times, with intervals that do not overlap."""
        return self.near.high < other.near.low and self.far.high < other.far.low


def check_two_times(model: Scenario, times: Sequence[float]) -> None:
    """Raise ValueError where the two times [mean service times] do not grow, or lie beyond where there is a tail."""
    near, far = (positive("frontier", "times", time) for time in times)
    if not near < far:
        refuse("frontier", "times", "two times, the second later than the first", tuple(times))
    check_t_grid(model, [time * model.sizes.mean for time in times])


def frontier_point(policy: Any, model: Scenario, times: Sequence[float], **run: Any) -> FrontierPoint:
    """Estimate the normalised tail at two times by the largest-job decomposition.

    Args:
        policy: as for `tail_curve`.
        model: as for `tail_curve`.
        times: two [mean service times], the second later than the first.
        run: as for `tail_curve`: how precisely, from which seed, and on what.

    Raises:
        ValueError: an argument is not allowed; or the system is not stable under the policy.
        KeyboardInterrupt: interrupted before there was enough for intervals.
    """
    check_two_times(model, times)
    curve = tail_curve(policy, model, [time * model.sizes.mean for time in times], **run)
    near, far = (
        Interval(float(value), float(low), float(high), 0.95)
        for value, low, high in zip(curve.normalised_tail, curve.low, curve.high, strict=True)
    )
    return FrontierPoint(policy=curve.policy, near=near, far=far, reached=curve.reached)
