"""Processes of a worker's own that tasks run in."""
