"""`caudal topic`."""
