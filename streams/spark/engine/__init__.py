"""The engine: one process with one Spark session, shared by all clients that name its folder; and its client."""
