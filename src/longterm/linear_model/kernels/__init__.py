"""Compiled kernels of the linear models: plain Numba loops over rows and coordinates.

layout.py                                   parameters and state as records with named fields
losses.py, mixture.py, round.py             losses, the scale mixture, and the part of a round that all rules share
aftrl.py, penalised_ftrl.py                 one loop over rows for each rule, O(d) per row
sparse_aftrl.py, heap.py                    A-FTRL on sparse rows, in time proportional to their non-zeros
moments.py                                  sums over features that the scaling of features needs
compile.py                                  compiler options
kernel_state.py                             `KernelState`: the arrays of one learner and the loop of its rule
"""
