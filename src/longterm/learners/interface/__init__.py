"""The interface of a learner, and what all of them share."""
