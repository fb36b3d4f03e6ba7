"""The best fixed decision in hindsight, with a certificate of how exact it is."""

from longterm.hindsight.base import Hindsight
from longterm.hindsight.certificates import certified_gap, elastic_net_gap, support_of_elastic_net
from longterm.hindsight.squared_distance import nearest_to_mean

__all__ = ["Hindsight", "certified_gap", "elastic_net_gap", "nearest_to_mean", "support_of_elastic_net"]
