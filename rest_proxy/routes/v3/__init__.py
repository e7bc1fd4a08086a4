"""API v3."""
