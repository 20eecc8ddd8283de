"""The kernel's entry points by family of policies, for built-in rules and for users' functions."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numba
from numba import types

from queue_env.kernel.compile import jit_entry
from queue_env.kernel.layout import ANCHOR, INDEX, LEVELS, RATES, SHARING, allocate

Run = Callable[..., int]

_MODULES = {INDEX: "index", ANCHOR: "anchor", SHARING: "sharing", LEVELS: "levels", RATES: "rates"}
_FLOATS = types.Array(types.float64, 1, "C")
_FLOAT = types.float64
_USER_SIGNATURES = {
    INDEX: _FLOAT(_FLOAT, _FLOAT, _FLOAT, _FLOATS),
    ANCHOR: _FLOAT(_FLOAT, _FLOAT, _FLOAT, _FLOAT, _FLOAT, _FLOATS),
    RATES: _FLOAT(_FLOATS, _FLOATS, _FLOATS, types.int64, _FLOATS, _FLOATS),
}


def entry_point(family: int, function: Callable[..., float] | None = None) -> Run:
    """Return ``run(memory, arrivals, sizes, patience) -> status`` for a family of policies.

    Args:
        family: INDEX, ANCHOR, SHARING, LEVELS or RATES.
        function: the user's rule, plain Python or a numba dispatcher; None for the built-in ones.

    Raises:
        ValueError: numba cannot compile the user's function for the signature of its family.
    """
    if function is not None:
        run, rule = _user_run(family), _compile_rule(family, function)
        return lambda memory, *arrays: run(memory, *arrays, rule)
    return _without_rule(family, getattr(_module(family), f"run_{_MODULES[family]}"))


def drive_point(family: int, function: Callable[..., float] | None = None) -> Run:
    """Return ``drive(memory, work) -> status``, which runs blocks (see `blocks`); arguments as for `entry_point`."""
    if function is not None:
        drive, rule = _user_drive(family), _compile_rule(family, function)
        return lambda memory, work: drive(memory, work, rule)
    return _without_rule(family, getattr(import_module("queue_env.kernel.blocks"), f"drive_{_MODULES[family]}"))


def _module(family: int) -> ModuleType:
    return import_module(f"queue_env.kernel.{_MODULES[family]}")


def _without_rule(family: int, entry: Run) -> Run:
    if family in (INDEX, ANCHOR):
        return lambda memory, *arrays: entry(memory, *arrays, None)
    return entry


@cache
def _user_run(family: int) -> Run:
    typeof: Callable[[object], Any] = numba.typeof
    memory = typeof(allocate(1))
    signature = types.int64(memory, _FLOATS, _FLOATS, _FLOATS, types.FunctionType(_USER_SIGNATURES[family]))
    run: Run = jit_entry(getattr(_module(family), f"_run_{_MODULES[family]}"), signature)
    return run


@cache
def _user_drive(family: int) -> Run:
    from queue_env.kernel import blocks, packing

    typeof: Callable[[object], Any] = numba.typeof
    work = typeof(packing.no_work())
    signature = types.int64(typeof(allocate(1)), work, types.FunctionType(_USER_SIGNATURES[family]))
    drive: Run = jit_entry(getattr(blocks, f"_drive_{_MODULES[family]}"), signature)
    return drive


@cache
def _compile_rule(family: int, function: Callable[..., float]) -> Any:
    signature = _USER_SIGNATURES[family]
    plain = getattr(function, "py_func", function)
    try:
        return numba.njit(signature, nogil=True)(plain)
    except Exception as error:  # numba has many kinds, some of them not of its own base class
        name = getattr(plain, "__name__", repr(plain))
        raise ValueError(f"function={name}: numba cannot compile it as {signature}: {error}") from error
