"""Bytes of a topic to data, and back."""
