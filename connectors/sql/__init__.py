"""Tables of SQL databases as a source and as a sink."""
