"""Choose among actions under budgets: see the request, act, and learn from the outcome of the action alone."""
