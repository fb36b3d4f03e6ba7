"""Budget pacing: see the request, bid, and never overspend."""
