"""Plans of statements: what Spark runs, as values, and the streams, tables and topics that have to be made for it."""
