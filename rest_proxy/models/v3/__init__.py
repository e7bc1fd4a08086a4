"""Bodies of API v3."""
