"""HTTP: parse, call the registry, answer."""
