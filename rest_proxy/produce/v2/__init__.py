"""Producing through API v2."""
