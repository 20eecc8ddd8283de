"""Differences between returned values, shared memory, and what is outside a space."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from queue_env.checks.compare import first_difference, outside, shared_memory

NAN = float("nan")


@pytest.mark.parametrize(
    "value",
    [
        NAN,
        np.float32("nan"),
        np.array([1.0, NAN]),
        np.array([None, NAN, "a", {"b": np.array([NAN])}], dtype=object),
        {"a": [1, (2.0, NAN)], "b": None, "c": np.array(["x", "y"])},
        np.array(1.5),
        10**400,
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_equal(value: Any, exact: bool) -> None:
    same = np.array(value, copy=True) if isinstance(value, np.ndarray) else value
    assert first_difference("value", same, value, exact=exact) is None


@pytest.mark.parametrize(
    ("got", "expected", "text"),
    [
        (1, 2, "value is 1, expected 2"),
        (1, True, "value is 1 of type int, expected True of type bool"),
        (np.True_, True, "value is True of type numpy.bool, expected True of type bool"),
        ("a", "b", "value is 'a', expected 'b'"),
        (NAN, 1.0, "value is nan, expected 1.0"),
        ([1, 2], [1], "value is [1, 2], expected [1]"),
        ((1, 2), (1, 3), "value[1] is 2, expected 3"),
        ({"a": 1}, {}, "value has 'a' too many; expected []"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "value['a']['b'] is 1, expected 2"),
        (np.zeros(2), np.zeros(2, dtype=np.float32), "value has dtype float64, expected float32"),
        (np.zeros((2, 1)), np.zeros(2), "value has shape (2, 1), expected (2,)"),
        (np.array([[0.0, 1.5]]), np.array([[0.0, 2.5]]), "value[0, 1] is 1.5, expected 2.5"),
        (np.array([{"a": np.zeros(2)}]), np.array([{"a": np.arange(2.0)}]), "value['a'][0, 1] is 0.0, expected 1.0"),
        (np.array([None, 1], dtype=object), np.array([None, "1"], dtype=object), "value[1] is 1 of type int, expected"),
    ],
)
def test_difference(got: Any, expected: Any, text: str) -> None:
    assert str(first_difference("value", got, expected)).startswith(text)


def test_tolerance() -> None:
    close = np.array([1.0, NAN]), np.array([1.000001, NAN], dtype=np.float32)
    assert first_difference("value", *close, exact=False) is None
    assert first_difference("value", 1.0, np.float32(1.000001), exact=False) is None
    assert first_difference("value", 1.0, 1.0001, exact=False) is not None
    assert first_difference("value", np.arange(2), np.array([0, 2]), exact=False) is not None
    assert first_difference("value", 1, 1.0, exact=False) is not None


def test_long_values_are_cut() -> None:
    found = first_difference("value", "a" * 1000, "b")
    assert found is not None
    assert len(found.text) < 200


def test_shared_memory() -> None:
    whole = np.zeros(4)
    nested = np.array([None, whole], dtype=object)
    assert shared_memory({"a": whole[::2]}, {"b": whole[1::2]}) is None
    assert shared_memory({"a": whole}, {"b": {"c": (1, whole[1:])}}) == ("a", "b['c'][1]")
    assert shared_memory({"a": nested.copy()}, {"b": whole}) == ("a[1]", "b")
    assert shared_memory({"a": (1, "x", None)}, {"b": (1, "x", None)}) is None
    words = ["x"]
    assert shared_memory({"a": {"k": words}}, {"a": {"k": words}}) == ("a['k']", "a['k']")


def test_outside() -> None:
    box = spaces.Box(0, 1, (2,), np.float64)
    space = spaces.Dict({"box": box, "number": spaces.Discrete(3)})
    inside = {"box": np.array([0.0, 1.0]), "number": 2}
    assert outside("obs", inside, space) is None
    assert outside("obs", inside | {"box": np.array([0.0, NAN])}, space) == "obs['box'][1] is nan, outside [0.0, 1.0]"
    assert outside("obs", inside | {"number": 3}, space) == "obs['number'] is 3 (int), not in Discrete(3)"
    assert str(outside("obs", {"box": inside["box"]}, space)).startswith("obs is {'box'")
    assert "(float32 array)" in str(outside("obs", np.zeros(3, dtype=np.float32), box))
