"""`caudal schema`."""
