"""`caudal spark`."""
