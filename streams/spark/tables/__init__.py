"""Tables of Spark's catalog that are filled file by file: parquet and delta, exactly once, and their upkeep."""
