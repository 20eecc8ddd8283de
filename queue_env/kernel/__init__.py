"""The compiled simulator: plain numba functions over structured arrays that the caller allocates.

Randomness comes in as arrays of arrival times, sizes and patience; status codes come out. Nothing here imports
gymnasium.
"""
