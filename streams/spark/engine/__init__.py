"""The engine: one process with one Spark session that everybody who names its folder shares, and its client."""
