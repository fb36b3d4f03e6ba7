"""Thousands of learners on a GPU: CUDA for A-FTRL and A-OGD, compiled at run time by CuPy (extra `cuda`).

rounds.cu    the rounds, the same text for a GPU and, for tests, for the host's C++ compiler
device.py    what is there, arrays on it, launches

Why CUDA text through CuPy, and not Triton or Pallas: a learner is a recurrence of half a million rounds whose state has
to stay in registers, shared by a few threads that add up by shuffles. Triton and Pallas think in blocks and leave the
registers to their compilers; a JAX scan of the same arithmetic took eighteen times as long. CuPy compiles at run time
for the d and the loss at hand, and needs no compiler on the machine.
"""
