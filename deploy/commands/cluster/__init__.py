"""`caudal cluster`."""
