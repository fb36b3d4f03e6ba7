"""Many independent learners in one object."""
