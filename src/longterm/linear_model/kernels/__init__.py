"""The rules, compiled: what a learner remembers, how a round is played on it, one file for each rule.

rule.py                                     the memory of one learner with its kernels: the only door to this folder
round.py                                    a block of rows, one row; what all rules do in a round
aogd.py, aftrl.py, penalised_ftrl.py        one round of each rule, O(d)
sparse_aftrl.py, heap.py                    A-FTRL on sparse rows, a round costs what it touches
layout.py, losses.py, rows.py, compile.py   named fields, losses by number, rows dense and sparse, Numba
"""
