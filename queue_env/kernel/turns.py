"""How threads share the systems of a step: each takes up the next block of them that no other has taken up."""

from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from queue_env.kernel.layout import Ints


def _exchange(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Put a number into an array of int64 and return what was there, in one step that no other thread can split."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        made = context.make_array(kind)(context, builder, arguments[0])
        place = cast(Any, cgutils).get_item_pointer(context, builder, kind, made, [arguments[1]], wraparound=False)
        return builder.atomic_rmw("xchg", place, arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), generate


exchange = cast("Callable[[Ints, int, int], int]", intrinsic(_exchange))
