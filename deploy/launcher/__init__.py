"""Starts the platform on one machine, keeps it running, and reports its state."""
