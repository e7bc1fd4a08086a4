"""API v2."""
