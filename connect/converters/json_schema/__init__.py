"""JSON with schemas in a registry."""
