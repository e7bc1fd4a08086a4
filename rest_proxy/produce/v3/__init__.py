"""Requests of API v3 as records: one by one, in batches, and as a stream in both directions."""
