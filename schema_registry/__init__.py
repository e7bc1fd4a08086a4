"""Versioned schemas over HTTP: an API that Confluent's clients cannot tell from their own registry."""
