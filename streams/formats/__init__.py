"""How keys and values of streams and tables are written: bytes as values of SQL and back, one by one or as columns."""
