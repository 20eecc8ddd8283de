"""How the checkers of environments fail: one kind of error, whoever found the fault."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NoReturn

from queue_env.distributions.checks import refuse

_COLOUR = re.compile(r"\x1b\[[\d;]*m")


class EnvCheckError(AssertionError):
    """An environment is not what it should be; the message says what is wrong, where, and both values."""


def fail(where: str, what: str) -> NoReturn:
    """Raise the error that says what is wrong, and where."""
    raise EnvCheckError(f"{where}: {what}")


@contextmanager
def reported(where: str) -> Iterator[None]:
    """Turn whatever the environment, or another checker, raises in this block into an `EnvCheckError`."""
    try:
        yield
    except EnvCheckError:
        raise
    except Exception as error:
        text = _COLOUR.sub("", str(error))
        raise EnvCheckError(f"{where}: raises {type(error).__name__}: {text}") from error


@contextmanager
def strict_warnings(allow: Collection[str]) -> Iterator[None]:
    """Make errors of all warnings in this block but those in whose text one of the regular expressions is found."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for pattern in allow:
            # A filter matches from the beginning, where Gymnasium puts a colour.
            warnings.filterwarnings("ignore", message=f"(?s).*(?:{pattern})")
        yield


def check_skipped(owner: str, skip: Collection[str], parts: tuple[str, ...]) -> None:
    """Refuse names of parts to be left out that no part of the checker has."""
    if isinstance(skip, str) or not set(skip) <= set(parts):
        refuse(owner, "skip", f"a collection of some of {', '.join(map(repr, parts))}", skip)
