"""Found by Spark because its name begins with pyspark_: the data source `delta`."""

from streams.spark.tables.delta_source import DeltaSource as DefaultSource

__all__ = ["DefaultSource"]
