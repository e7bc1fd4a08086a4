"""HTTP: parse, call, answer."""
