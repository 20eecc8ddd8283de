"""The kernel's entry points by family of policies, for built-in rules and for users' functions."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
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
    run = getattr(import_module(f"queue_env.kernel.{_MODULES[family]}"), f"run_{_MODULES[family]}")
    if family in (INDEX, ANCHOR):
        return lambda memory, *arrays: run(memory, *arrays, None)
    return run  # type: ignore[no-any-return]


@cache
def _user_run(family: int) -> Run:
    name = _MODULES[family]
    module = import_module(f"queue_env.kernel.{name}")
    typeof: Callable[[object], Any] = numba.typeof
    memory = typeof(allocate(1))
    signature = types.int64(memory, _FLOATS, _FLOATS, _FLOATS, types.FunctionType(_USER_SIGNATURES[family]))
    run: Run = jit_entry(getattr(module, f"_run_{name}"), signature)
    return run


@cache
def _compile_rule(family: int, function: Callable[..., float]) -> Any:
    signature = _USER_SIGNATURES[family]
    plain = getattr(function, "py_func", function)
    try:
        return numba.njit(signature, nogil=True)(plain)
    except Exception as error:  # numba has many kinds, some of them not of its own base class
        name = getattr(plain, "__name__", repr(plain))
        raise ValueError(f"function={name}: numba cannot compile it as {signature}: {error}") from error
