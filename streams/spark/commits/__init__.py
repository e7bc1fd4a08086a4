"""Exactly-once writes of a query: what it has decided (manifest), and records sent with their offsets (outbox)."""
