"""The learners that can be named, each built from a problem, the number of rounds and a few plain parameters."""

from longterm.experiments.catalogue.learners import adaptive, aogd, mahdavi, projecting, proximal, queues

LEARNERS = (*aogd.ENTRIES, *adaptive.ENTRIES, *proximal.ENTRIES, *mahdavi.ENTRIES, *projecting.ENTRIES, *queues.ENTRIES)
"""Ours."""

__all__ = ["LEARNERS"]
