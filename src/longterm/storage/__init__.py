"""Files that survive: atomic writes, packing, snapshots, specifications of what a state belongs to."""
