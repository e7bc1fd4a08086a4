"""Starts the platform on one machine, keeps it running, and tells how it fares."""
