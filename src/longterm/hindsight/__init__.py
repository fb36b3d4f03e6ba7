"""The best fixed decision in hindsight."""

from longterm.hindsight.squared_distance import Hindsight, nearest_to_mean

__all__ = ["Hindsight", "nearest_to_mean"]
