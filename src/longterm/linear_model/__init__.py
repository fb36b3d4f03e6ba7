"""Linear models trained one row at a time under a budget: compiled streaming kernels."""
