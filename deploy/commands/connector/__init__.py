"""`caudal connector`."""
