"""Producing through API v3."""
