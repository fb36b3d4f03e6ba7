"""Virtual queues of violation."""
