"""Redis: a sink for all its data types, and a source of streams."""
