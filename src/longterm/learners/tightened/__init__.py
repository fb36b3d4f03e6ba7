"""Learners on a tightened constraint g + γ, for Σ g(x_t) ≤ 0."""
