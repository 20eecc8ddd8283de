"""What no other thread can split: reads, writes and sums, and the offer of the processor to another thread."""

import sys
from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from queue_env.kernel.layout import Ints


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = signature.args[0]
    made = context.make_array(kind)(context, builder, arguments[0])
    return cast(Any, cgutils).get_item_pointer(context, builder, kind, made, list(arguments[1:3]), wraparound=False)


def _load(typing: Any, array: Any, row: Any, column: Any) -> Any:
    """Return what is in an array of int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(array, types.intp, types.intp), generate


def _store(typing: Any, array: Any, row: Any, column: Any, value: Any) -> Any:
    """Put a number into an array of int64, after all that has been written before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[3], _place(context, builder, signature, arguments), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.int64), generate


def _add(typing: Any, array: Any, row: Any, column: Any, value: Any) -> Any:
    """Add to a number in an array of int64, and return what was there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _place(context, builder, signature, arguments), arguments[3], "seq_cst")

    return types.int64(array, types.intp, types.intp, types.int64), generate


load = cast("Callable[[Ints, int, int], int]", intrinsic(_load))
store = cast("Callable[[Ints, int, int, int], None]", intrinsic(_store))
add = cast("Callable[[Ints, int, int, int], int]", intrinsic(_add))
# Let another thread have the processor, if one waits for it: a function of the operating system.
offer_processor = cast(
    "Callable[[], int]",
    types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()),
)
