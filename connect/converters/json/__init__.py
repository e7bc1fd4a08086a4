"""JSON, alone or with its schema beside it."""
