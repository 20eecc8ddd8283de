"""The anchor's rate by a small network: what it sees, and its layers. All its numbers are parameters of the policy.

They are, in this order: the unit of size and time, the activation, the number of layers, the widths of the inputs and
of each layer, the codes of the features that are the inputs, and for each number that a layer gives its bias and its
weights.
"""

import math

from queue_env.kernel import service
from queue_env.kernel.compile import jit, jit_apart
from queue_env.kernel.layout import Floats, Memory, Record

UNIT, ACTIVATION, LAYERS, WIDTHS = 0, 1, 2, 3  # places of the parameters
TANH, RELU = 0, 1

# ---- features, in the order of `queue_env.network.FEATURES` --------------------------------------
ANCHOR_SIZE = 0
ANCHOR_REMAINING = 1
ANCHOR_AGE = 2
NEXT_REMAINING = 3
NEXT_AGE = 4
LEAST_REMAINING = 5
OTHERS_WORK = 6
CROWD = 7
SERVERS = 8
LOAD = 9
SPARE = 10


@jit
def remaining_of_next(s: Record) -> float:
    """Return what remains of the partial job, now."""
    done = s["partial_rate"] * (s["now"] - s["partial_since"])
    return max(float(s["partial_remaining"] - done), 0.0)


@jit
def work_like(m: Memory, s: Record, code: int) -> float:
    """Return a feature before it is compressed, in units of work or time."""
    now = s["now"]
    if code == ANCHOR_SIZE:
        return float(m.jobs[s["anchor"]]["size"])
    if code == ANCHOR_REMAINING:
        done = s["anchor_rate"] * (now - s["anchor_since"])
        return max(float(s["anchor_remaining"] - done), 0.0)
    if code == ANCHOR_AGE:
        return float(now - m.jobs[s["anchor"]]["arrival"])
    if code == NEXT_REMAINING or (code == LEAST_REMAINING and s["in_service"] == 0):
        return remaining_of_next(s)
    if code == NEXT_AGE:
        return float(now - m.jobs[s["partial"]]["arrival"])
    if code == LEAST_REMAINING:
        return max(service.first_finish(m, s) - float(now), 0.0)
    return max(float(s["backlog"]), 0.0)


@jit
def feature(m: Memory, s: Record, code: int, unit: float) -> float:
    """Return a feature of a state with more jobs than servers present; the unit is that of size and time."""
    if code == CROWD:
        return math.log(float(s["number"]) / s["servers"])
    if code == SERVERS:
        return math.log(float(s["servers"]))
    if code == LOAD:
        return float(1.0 - s["spare"] / s["servers"])
    if code == SPARE:
        return float(s["spare"])
    # To all the digits that matter; log1p takes three times as long.
    return math.log(1.0 + work_like(m, s, code) / unit)


@jit_apart
def pass_through(numbers: Floats, values: Floats) -> float:
    """Return what the network gives for its inputs, after a logistic function.

    Args:
        numbers: the policy's parameters.
        values: scratch, at least two rows; the inputs are in the first.
    """
    layers = int(numbers[LAYERS])
    place = WIDTHS + layers + 1 + int(numbers[WIDTHS])
    row = 0
    for layer in range(layers):
        inputs = int(numbers[WIDTHS + layer])
        for j in range(int(numbers[WIDTHS + layer + 1])):
            total = numbers[place]
            for i in range(inputs):
                total += numbers[place + 1 + i] * values[row, i]
            place += 1 + inputs
            if layer < layers - 1:
                total = math.tanh(total) if numbers[ACTIVATION] == TANH else max(total, 0.0)
            values[1 - row, j] = total
        row = 1 - row
    return 1.0 / (1.0 + math.exp(-values[row, 0]))


@jit
def network_rate(m: Memory, s: Record) -> float:
    """Return the anchor's rate for the state after an event, with more jobs than servers present."""
    first = WIDTHS + int(m.parameters[LAYERS]) + 1
    unit = float(m.parameters[UNIT])
    for i in range(int(m.parameters[WIDTHS])):
        m.scratch[0, i] = feature(m, s, int(m.parameters[first + i]), unit)
    return pass_through(m.parameters, m.scratch)
