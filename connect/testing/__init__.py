"""Standard suites that every connector must pass."""
