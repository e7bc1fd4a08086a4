"""Consumer instances: their lifetime, polls, positions, and what survives a restart."""
