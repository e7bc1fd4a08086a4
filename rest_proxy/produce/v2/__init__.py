"""Requests of API v2 as records, and outcomes as its answers."""
