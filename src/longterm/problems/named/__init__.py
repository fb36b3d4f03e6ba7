"""Ready-made problems."""
