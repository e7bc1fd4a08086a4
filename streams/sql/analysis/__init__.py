"""What a statement means: names resolved, expressions typed, clauses checked against the catalog."""
