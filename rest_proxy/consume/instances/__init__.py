"""Consumer instances: their life, polls, positions, and what survives a restart."""
