"""Connect's state, in compacted topics."""
