"""Tables of Spark's catalog that are filled file by file: parquet and delta, exactly once, and their upkeep."""

from streams.spark.tables.model import StagedFile, TableFormat, TableInfo, TableSpec, UpkeepResult
from streams.spark.tables.tables import Tables

__all__ = ["StagedFile", "TableFormat", "TableInfo", "TableSpec", "Tables", "UpkeepResult"]
