"""Numbers as people read them in little space."""

from __future__ import annotations

import math

__all__ = ["clock", "job_name", "short", "tick"]

MISSING = "–"


def short(value: float) -> str:
    """A number in at most seven characters, to about three digits; "–" for NaN."""
    size = abs(value)
    if not math.isfinite(value):
        return MISSING
    if size >= 99_999.5 or 0 < size < 0.000_995:
        return _power(value, 2)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.0995 or size == 0 else f"{value:.2g}"


def clock(value: float) -> str:
    """A time to a tenth, from a million on like `short`."""
    return f"{value:,.1f}" if abs(value) < 999_999.5 else short(value)


def tick(value: float) -> str:
    """The label of a round number on an axis: 0.5, 20, 1,000, 1e6."""
    return f"{value:,g}" if 1e-3 <= value < 1e6 or value == 0 else _power(value, 6)


def job_name(number: int) -> str:
    """The number of a job in at most seven characters: of long ones the last six digits."""
    digits = str(number)
    return digits if len(digits) <= 7 else "…" + digits[-6:]


def _power(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
