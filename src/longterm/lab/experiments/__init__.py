"""Experiments: from a specification to a folder of results, on one machine or many."""
