"""Policies of your own, as a few lines of numba code that run inside the compiled kernel.

The function is handed to the kernel by pointer, so the kernel is compiled once, whatever the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from queue_env.kernel import layout

__all__ = ["UserPolicy", "allocation_policy", "anchor_policy", "index_policy"]


@dataclass(frozen=True)
class UserPolicy:
    """A policy whose rule is a user's function; made by the three functions below.

    One without a function is a rule of the kernel with numbers of the user's, such as the weights of a network.
    """

    name: str
    function: Callable[..., float] | None = field(hash=False)
    family: int
    kernel: Mapping[str, int] = field(hash=False)
    parameters: tuple[float, ...] = ()


def index_policy(
    function: Callable[..., float],
    *,
    name: str | None = None,
    preemptive: bool = True,
    dynamic: bool = True,
    parameters: Sequence[float] = (),
) -> UserPolicy:
    """Serve the n jobs with the smallest index, each at rate one.

    Args:
        function: ``function(size, remaining, number, parameters) -> float``, plain Python or ``@numba.njit``; all
            floats, ``number`` counts the arrivals, ``parameters`` is an array. The index of a job may fall while it is
            served and must not change while it waits; ties go to the earlier job.
        name: in tables; the function's name if not given.
        preemptive: whether an arriving job may take the server of one with a larger index.
        dynamic: whether the index depends on ``remaining``. An index of size and number alone is faster on many
            servers with ``dynamic=False``: O(log n) an arrival instead of O(n).
        parameters: numbers handed to the function.

    Examples:
        >>> from numba import njit
        >>> @njit
        ... def size_times_remaining(size, remaining, number, parameters):
        ...     return size * remaining
        >>> policy = index_policy(size_times_remaining)
    """
    order = layout.USER_DYNAMIC if dynamic and preemptive else layout.USER_STATIC
    kernel = {"family": layout.INDEX, "order": order, "preemptive": int(preemptive)}
    return _user_policy(function, name, layout.INDEX, kernel, parameters)


def anchor_policy(
    function: Callable[..., float], *, name: str | None = None, parameters: Sequence[float] = ()
) -> UserPolicy:
    """Give the anchor (see ``dynasplit``) a rate of your own, and SRPT the rest.

    Args:
        function: ``function(size, remaining, backlog, jobs, spare, parameters) -> float``: the anchor's rate from its
            original and remaining size, the remaining work of the other jobs, the number of jobs, and delta. It is
            asked after every event at which more jobs than servers are present; the rate, cut to [0, 1], holds until
            the next.
        name: in tables; the function's name if not given.
        parameters: numbers handed to the function.
    """
    kernel = {
        "family": layout.ANCHOR,
        "order": layout.REMAINING,
        "preemptive": 1,
        "rate_kind": layout.USER_RATE,
    }
    return _user_policy(function, name, layout.ANCHOR, kernel, parameters)


def allocation_policy(
    function: Callable[..., float], *, name: str | None = None, parameters: Sequence[float] = ()
) -> UserPolicy:
    """Set the rate of every job yourself. O(jobs present) an event.

    Args:
        function: ``function(sizes, remaining, ages, servers, parameters, rates) -> float``: arrays over the jobs
            present, in arrival order. It writes ``rates`` (zeros when called; 0 <= v <= 1, sum at most ``servers``)
            and returns for how long they hold if nothing happens before, or ``inf``.
        name: in tables; the function's name if not given.
        parameters: numbers handed to the function.
    """
    return _user_policy(function, name, layout.RATES, {"family": layout.RATES}, parameters)


def _user_policy(
    function: Callable[..., float],
    name: str | None,
    family: int,
    kernel: Mapping[str, int],
    parameters: Sequence[float],
) -> UserPolicy:
    if not callable(function):
        raise ValueError(f"function={function!r}, allowed: a function that numba can compile")
    name = str(getattr(function, "__name__", "policy")) if name is None else name
    try:
        numbers = tuple(float(number) for number in parameters)
    except (TypeError, ValueError):
        raise ValueError(f"parameters={parameters!r}, allowed: a sequence of numbers") from None
    return UserPolicy(name, function, family, kernel, numbers)
