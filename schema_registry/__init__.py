"""Versioned schemas over HTTP, with the API of Confluent's registry."""
