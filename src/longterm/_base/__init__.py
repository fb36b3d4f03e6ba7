"""Helpers that all folders share: arrays, validation, display, files, progress.

A helper belongs here if two folders need it and it knows nothing of problems, learners, money or databases.
"""
