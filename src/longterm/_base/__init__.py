"""What every folder shares and none is about: arrays, validation, display, files, progress.

A helper belongs here if two folders need it and it knows nothing of problems, learners, money or databases.
"""
