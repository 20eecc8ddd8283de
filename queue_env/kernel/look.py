"""A look at a system between two calls: all that a network could see there, whatever the policy of the anchor is."""

from queue_env.kernel.anchor import recount_backlog
from queue_env.kernel.compile import jit_entry
from queue_env.kernel.layout import Floats, Memory
from queue_env.kernel.network import feature


@jit_entry
def look(m: Memory, unit: float, seen: Floats) -> float:
    """Write down the features of a state with more jobs than servers, and return the anchor's rate.

    Args:
        m: the memory of a system whose policy has an anchor and shares a server between it and another job.
        unit: of size and time.
        seen: `(features,)`, to be filled in the order of `queue_env.network.FEATURES`.
    """
    s = m.system[0]
    recount_backlog(m, s)  # which policies that do not look at it leave as it was
    for code in range(len(seen)):
        seen[code] = feature(m, s, code, unit)
    return float(s["anchor_rate"])
