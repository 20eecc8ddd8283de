"""Compiled DynaSPLIT on a run of eight jobs computed by hand."""

import numpy as np

import queue_env
from queue_env import Workload


def test_anchor_role_and_rates() -> None:
    # Two servers, delta = 1 and a margin of 1/4 at every size: the anchor at 3/4, the second of the others at 1/4.
    #
    # time     | remaining sizes (a: anchor)          | what happens; the rates in the same order
    # 0        | 0a: 4                                | 0 finds an empty system; 1
    # 1        | 0a: 3, 1: 6                          | 1 is larger, but the role is not taken from 0; 1 1
    # 2        | 0a: 2, 1: 5, 2: 2                    | 2 arrives; 3/4 1/4 1
    # 4        | 0a: 1/2, 1: 9/2                      | 2 completes; 1 1
    # 4 1/8    | 0a: 3/8, 1: 35/8, 3: 1               | 3 arrives; 3/4 1/4 1
    # 4 5/8    | 1a: 17/4, 3: 1/2                     | 0 completes, 1 is the largest; 1 1
    # 5        | 1a: 31/8, 3: 1/8, 4: 6               | 4 arrives; 3/4 1 1/4
    # 5 1/8    | 1a: 121/32, 4: 191/32                | 3 completes; 1 1
    # 5 29/32  | 1a: 3, 4: 166/32, 5: 8               | 5 arrives, the largest; 3/4 1 1/4
    # 6 29/32  | 1a: 9/4, 4: 134/32, 5: 31/4, 6: 1    | 6 arrives; 3/4 1/4 0 1
    # 7 29/32  | 1a: 3/2, 4: 126/32, 5: 31/4          | 6 completes; 3/4 1 1/4
    # 9 29/32  | 4: 62/32, 5a: 29/4                   | 1 completes, 5 is the largest; 1 1
    # 10 29/32 | 4: 30/32, 5a: 25/4, 7: 2             | 7 arrives; 1 3/4 1/4
    # 11 27/32 | 5a: 355/64, 7: 113/64                | 4 completes; 1 1
    # 13 39/64 | 5a: 242/64                           | 7 completes
    # 17 25/64 |                                      | 5 completes
    arrivals = [0, 1, 2, 4.125, 5, 5 + 29 / 32, 6 + 29 / 32, 10 + 29 / 32]
    workload = Workload(arrivals, [4, 6, 2, 1, 6, 8, 1, 2])
    policy = "dynasplit:delta=1,margin=constant,shape=0.25"
    records = queue_env.simulate(workload, policy, servers=2, records=True).records
    assert records is not None
    departures = [4.625, 9 + 29 / 32, 4, 5.125, 11 + 27 / 32, 17 + 25 / 64, 7 + 29 / 32, 13 + 39 / 64]
    np.testing.assert_array_equal(records["departure_time"], departures)
    np.testing.assert_array_equal(records["start_time"], arrivals)
    np.testing.assert_array_equal(records["waiting_time"], [0, 0, 0, 0, 0, 1, 0, 0])
