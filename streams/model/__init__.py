"""What SQL, the library and the engine agree on: types, streams and tables, and the plan of a query, all as values."""
