"""A learner in a service: asked at once, told late, with its state in a database."""
