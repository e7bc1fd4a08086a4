"""Records that fail: error policy and dead letters."""
