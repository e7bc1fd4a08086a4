"""How commands write to a terminal, or to whatever stands in its place."""
