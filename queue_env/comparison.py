"""Results of several policies on the same jobs, and their paired differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from queue_env.arrivals import suggestion
from queue_env.distributions.checks import refuse
from queue_env.quantities import estimate
from queue_env.tail import Interval

if TYPE_CHECKING:
    from queue_env.result import Result

__all__ = ["Comparison"]


class Comparison(Mapping[str, "Result"]):
    """Results of several policies on the same jobs, by label and in order.

    Args:
        results: at least one, with labels that differ and equally many rows and systems.

    Raises:
        ValueError: the results do not fit each other.
    """

    def __init__(self, results: Iterable[Result]) -> None:
        listed = list(results)
        self._results = {result.policy: result for result in listed}
        if not listed or len(self._results) < len(listed):
            refuse("comparison", "policies", "at least one, and all different", [r.policy for r in listed])
        for name in ("stats", "window"):
            lengths = [len(getattr(result, name)) for result in listed]
            if len(set(lengths)) > 1:
                refuse("comparison", f"lengths of {name}", "the same for all policies", lengths)

    def __getitem__(self, label: str) -> Result:
        return self._results[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        return f"Comparison of {', '.join(self)}"

    def difference(self, a: str, b: str, quantity: str = "mean_response", level: float = 0.95) -> Interval:
        """The quantity of policy a less that of b, with an interval over paired rows.

        Both met the same jobs, so what is left between rows is mostly what the policies did: the interval is
        much shorter than two separate ones.

        Args:
            a: label of a policy.
            b: label of another.
            quantity: a name as in `Result.value`.
            level: confidence level in (0, 1).

        Raises:
            ValueError: there is no such policy or quantity, or a number is out of range.
        """
        for label in (a, b):
            if label not in self:
                refuse("comparison", "policy", f"one of {', '.join(self)}{suggestion(label, self)}", label)
        found = estimate(self[a], quantity).minus(estimate(self[b], quantity))
        value, half = float(found.value), float(found.half_width(level))
        return Interval(value, value - half, value + half, level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """`Result.to_dict` of every policy, by label."""
        return {label: result.to_dict(level) for label, result in self.items()}
