"""Bodies of API v2."""
