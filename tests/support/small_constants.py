"""Constants of a problem, by hand."""

from longterm.problems import Constants


def constants(**changed):
    given = {
        "radius": 2.0,
        "diameter": 4.0,
        "loss_gradient_bound": 3.0,
        "constraint_gradient_bound": 1.0,
        "constraint_bound": 5.0,
        "loss_range": 7.0,
        "strong_convexity": 0.5,
    }
    return Constants(**{**given, **changed})
