# ruff: noqa: INP001 -- this folder is on the path, and so no package
"""Found by Spark because its name begins with pyspark_: the data source `delta`."""

from streams.spark.tables.delta_source import DeltaSource as DefaultSource

__all__ = ["DefaultSource"]
