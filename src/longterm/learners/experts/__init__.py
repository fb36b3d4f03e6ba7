"""Methods that weigh whole decisions as experts, each of which may break the constraint.

A learner belongs here if AdaHedge mixes or draws its decision from a finite set of points.
"""
