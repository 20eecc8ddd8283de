"""Where two values that environments returned first differ, whether they share memory, and what is out of a space."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from queue_env.checks.failures import fail

# As Gymnasium's own checkers have it, relative and absolute.
TOLERANCE = 1e-5
_LONGEST_SHOWN = 120  # characters
# Two, since an environment may use two buffers in turn.
_CALLS_REMEMBERED = 2


class Difference(NamedTuple):
    """The first place where two values differ.

    Attributes:
        path: name and keys, such as ``infos['cost']``.
        place: position in the array that is there; empty where the whole of it differs.
        text: what is the matter, with both values, such as ``is 1.0, expected 0.0``.
    """

    path: str
    place: tuple[int, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.path}{position(self.place)} {self.text}"


def position(index: tuple[int, ...]) -> str:
    """An index as it is written behind an array, nothing for an empty one."""
    return f"[{', '.join(map(str, index))}]" if index else ""


def shown(value: object) -> str:
    """A value in one line of bounded length."""
    is_number = isinstance(value, np.generic) and not isinstance(value, np.character)
    text = " ".join((str(value) if is_number else repr(value)).split())
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def type_name(value: object) -> str:
    """The name of a value's type, with its module, since NumPy's bool is called bool as well."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def first_difference(path: str, got: Any, expected: Any, *, exact: bool = True) -> Difference | None:
    """The first place where two values differ, or None.

    Mappings, sequences and arrays (of objects, too) are compared entry by entry, with types, dtypes and shapes.
    NaN equals NaN, and 0.0 equals -0.0.

    Args:
        path: name of the values.
        got: what is judged.
        expected: what it should be.
        exact: False lets floats differ by 1e-5, relatively or absolutely, and in their width.
    """
    if isinstance(got, Mapping) and isinstance(expected, Mapping):
        return _in_mappings(path, got, expected, exact)
    if type(got) is not type(expected) and (exact or not _is_float(got) or not _is_float(expected)):
        kinds = f"is {shown(got)} of type {type_name(got)}, expected {shown(expected)} of type {type_name(expected)}"
        return Difference(path, (), kinds)
    if isinstance(expected, np.ndarray):
        return _in_arrays(path, got, expected, exact)
    if isinstance(expected, list | tuple):
        return _in_sequences(path, got, expected, exact)
    if isinstance(expected, Number | np.generic):
        same = bool(_equal(np.asarray(got), np.asarray(expected), exact))
    else:
        same = got is expected or bool(got == expected)
    return None if same else Difference(path, (), _unequal(got, expected))


def shared_memory(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> tuple[str, str] | None:
    """Paths of the first two things in named values that are the same object, or arrays with memory in common.

    Only what can be changed counts: arrays, dicts and lists.
    """
    return _Parts(earlier).first_shared(_Parts(later))


class _Parts:
    """All arrays, dicts and lists in named values, with their paths, and where the arrays lie in memory."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.all = [part for name, value in values.items() for part in _mutable(name, value)]
        self.paths = {id(part): path for path, part in reversed(self.all)}
        self.arrays = [(path, part) for path, part in self.all if isinstance(part, np.ndarray)]
        bounds = [byte_bounds(part) for _, part in self.arrays]
        self.low, self.high = np.array(bounds, np.uintp).reshape(-1, 2).T

    def first_shared(self, later: _Parts) -> tuple[str, str] | None:
        for path, part in later.all:
            if id(part) in self.paths:
                return self.paths[id(part)], path
        # Only of arrays that overlap from end to end, which are few, must all strides be looked at.
        overlap = (later.low[:, None] < self.high) & (self.low < later.high[:, None])
        for new, old in np.argwhere(overlap):
            if np.shares_memory(later.arrays[new][1], self.arrays[old][1]):
                return self.arrays[old][0], later.arrays[new][0]
        return None


class LastReturns:
    """What the last calls of an environment returned, with which later calls must share no memory."""

    def __init__(self) -> None:
        self._calls: deque[tuple[str, _Parts]] = deque(maxlen=_CALLS_REMEMBERED)

    def add(self, where: str, call: str, returned: Mapping[str, Any]) -> None:
        """Remember what a call returned, or fail if it shares memory with what is remembered."""
        parts = _Parts(returned)
        for earlier_call, earlier in self._calls:
            shared = earlier.first_shared(parts)
            if shared is not None:
                text = f"{shared[1]} shares memory with {shared[0]} of {earlier_call}, expected new data in every call"
                fail(where, text)
        self._calls.append((call, parts))


def outside(path: str, value: Any, space: spaces.Space[Any]) -> str | None:
    """What part of a value is not in its space, or None if all is."""
    if space.contains(value):
        return None
    if isinstance(space, spaces.Dict) and isinstance(value, Mapping):
        for key, part in space.spaces.items():
            if key in value and (found := outside(f"{path}[{key!r}]", value[key], part)) is not None:
                return found
    if isinstance(space, spaces.Box) and isinstance(value, np.ndarray) and value.shape == space.shape:
        inside = (space.low <= value) & (value <= space.high)
        if not inside.all():
            index = _first(~inside)
            low, high = shown(space.low[index]), shown(space.high[index])
            return f"{path}{position(index)} is {shown(value[index])}, outside [{low}, {high}]"
    kind = f"{value.dtype} array" if isinstance(value, np.ndarray) else type_name(value)
    return f"{path} is {shown(value)} ({kind}), not in {shown(space)}"


def _in_mappings(path: str, got: Mapping[Any, Any], expected: Mapping[Any, Any], exact: bool) -> Difference | None:
    missing = [repr(key) for key in expected if key not in got]
    if missing:
        return Difference(path, (), f"lacks {', '.join(missing)}; it has {_keys(got)}, expected {_keys(expected)}")
    surplus = [repr(key) for key in got if key not in expected]
    if surplus:
        return Difference(path, (), f"has {', '.join(surplus)} too many; expected {_keys(expected)}")
    for key, value in expected.items():
        found = first_difference(f"{path}[{key!r}]", got[key], value, exact=exact)
        if found is not None:
            return found
    return None


def _in_sequences(path: str, got: Any, expected: Any, exact: bool) -> Difference | None:
    if len(got) != len(expected):
        return Difference(path, (), f"is {shown(got)}, expected {shown(expected)}")
    for index, (one, other) in enumerate(zip(got, expected, strict=True)):
        found = first_difference(f"{path}[{index}]", one, other, exact=exact)
        if found is not None:
            return found
    return None


def _in_arrays(path: str, got: NDArray[Any], expected: NDArray[Any], exact: bool) -> Difference | None:
    both_floats = np.issubdtype(got.dtype, np.floating) and np.issubdtype(expected.dtype, np.floating)
    if got.dtype != expected.dtype and (exact or not both_floats):
        return Difference(path, (), f"has dtype {got.dtype}, expected {expected.dtype}")
    if got.shape != expected.shape:
        return Difference(path, (), f"has shape {got.shape}, expected {expected.shape}")
    if expected.dtype == object:
        return _in_objects(path, got, expected, exact)
    differing = ~_equal(got, expected, exact)
    if not differing.any():
        return None
    index = _first(differing)
    return Difference(path, index, _unequal(got[index], expected[index]))


def _in_objects(path: str, got: NDArray[Any], expected: NDArray[Any], exact: bool) -> Difference | None:
    for index in np.ndindex(expected.shape):
        found = first_difference(path, got[index], expected[index], exact=exact)
        if found is not None:
            return found._replace(place=index + found.place)
    return None


def _equal(got: NDArray[Any], expected: NDArray[Any], exact: bool) -> NDArray[np.bool_]:
    if not exact and np.issubdtype(expected.dtype, np.inexact):
        return np.asarray(np.isclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))
    return np.asarray((got == expected) | ((got != got) & (expected != expected)), dtype=np.bool_)


def _mutable(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """All arrays, dicts and lists in a value, with their paths."""
    if isinstance(value, np.ndarray | dict | list):
        yield path, value
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _mutable(f"{path}[{key!r}]", part)
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _mutable(f"{path}[{index}]", part)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        for place in np.ndindex(value.shape):
            yield from _mutable(f"{path}{position(place)}", value[place])


def _first(differing: NDArray[np.bool_]) -> tuple[int, ...]:
    """Index of the first True, in C order: that of the lowest sub-environment."""
    return tuple(map(int, np.unravel_index(int(np.argmax(differing)), differing.shape)))


def _unequal(got: object, expected: object) -> str:
    return f"is {shown(got)}, expected {shown(expected)}"


def _keys(mapping: Mapping[Any, Any]) -> str:
    return shown(list(mapping))


def _is_float(value: object) -> bool:
    return isinstance(value, float | np.floating)
