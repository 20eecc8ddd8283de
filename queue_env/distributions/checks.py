"""Checks of the parameters of laws: each returns the clean value or raises one ValueError."""

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import NoReturn


def refuse(owner: str, argument: str, allowed: str, value: object) -> NoReturn:
    """Raise the ValueError that names the law, the argument, what is allowed, and the value."""
    shown = repr(value)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    raise ValueError(f"{owner}: {argument} must be {allowed}, got {shown}")


def _is_finite_number(value: object) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def finite(owner: str, argument: str, value: object) -> float:
    """The value as a float, if it is a finite number."""
    if not _is_finite_number(value):
        refuse(owner, argument, "a finite number", value)
    return float(value)  # type: ignore[arg-type]


def whole(owner: str, argument: str, value: object, least: int, most: int | None = None) -> int:
    """The value as an int, if it is a whole number in the range."""
    allowed = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        refuse(owner, argument, allowed, value)
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        refuse(owner, argument, allowed, value)
    return number


def positive(owner: str, argument: str, value: object) -> float:
    """The value as a float, if it is a finite number > 0."""
    if not _is_finite_number(value) or not value > 0:  # type: ignore[operator]
        refuse(owner, argument, "a finite number > 0", value)
    return float(value)  # type: ignore[arg-type]


def nonnegative(owner: str, argument: str, value: object) -> float:
    """The value as a float, if it is a finite number >= 0."""
    if not _is_finite_number(value) or not value >= 0:  # type: ignore[operator]
        refuse(owner, argument, "a finite number >= 0", value)
    return float(value)  # type: ignore[arg-type]


def positives(owner: str, argument: str, values: object) -> tuple[float, ...]:
    """The values as a tuple of floats, if they are a non-empty list of finite numbers > 0."""
    allowed = "a non-empty list of finite numbers > 0"
    if isinstance(values, str) or not isinstance(values, Iterable):
        refuse(owner, argument, allowed, values)
    numbers = tuple(values)
    for index, value in enumerate(numbers):
        if not _is_finite_number(value) or value <= 0:
            refuse(owner, f"{argument}[{index}]", "a finite number > 0", value)
    if not numbers:
        refuse(owner, argument, allowed, values)
    return tuple(map(float, numbers))
