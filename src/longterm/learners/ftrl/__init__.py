"""Follow the regularised leader under a long-term constraint: slots for the scale and the dual."""
