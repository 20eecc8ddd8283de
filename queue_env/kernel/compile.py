"""The one decorator of the kernel, with a disk cache whose key covers every kernel source.

Numba stamps a cached function with the content of that function's own file, so an edit of a function it calls would
go unnoticed and old machine code would run. The kernel is several files that call one another: its cache therefore
lies in a folder named by a hash of all of them.
"""

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def _source_hash() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> str:
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "queue-env" / _source_hash()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / "queue-env" / folder.name
        folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


CACHE_FOLDER = _cache_folder()
_LOCK = threading.Lock()  # the folder is a global setting of numba's while a function is set up


def _compile(function: Function, signature: Any = None, **options: bool) -> Function:
    config = cast(Any, numba.config)
    with _LOCK:
        previous, config.CACHE_DIR = config.CACHE_DIR, CACHE_FOLDER
        try:
            # Without reference counts (`_nrt`, unknown to the stubs) and with inlining, handing on a tuple of arrays
            # costs nothing.
            options |= {"nogil": True, "_nrt": False}
            compiler = cast("Callable[..., Callable[[Function], Function]]", numba.njit)
            compiled = compiler(signature, error_model="numpy", **options)(function)
        finally:
            config.CACHE_DIR = previous
    return compiled


def jit(function: Function) -> Function:
    """Compile a kernel function that is inlined where another calls it, and that Python does not call.

    Args:
        function: the Python function, which allocates nothing.

    Returns:
        The compiled dispatcher, typed as the function it stands for.
    """
    return _compile(function, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def jit_apart(function: Function) -> Function:
    """Compile a kernel function that stays a call inside the kernel: what is rare, or takes few arrays."""
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def jit_entry(function: Function, signature: Any = None) -> Function:
    """Compile an entry point, called from Python and cached on disk.

    Args:
        function: the Python function.
        signature: an explicit signature, such as one that takes a user's function by pointer; without it the
            function is compiled at its first call.
    """
    return _compile(function, signature, cache=True)
