"""Topics as a batch source: the records between two boundaries."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from typing_extensions import override

from streams.errors import DataLoss
from streams.spark.topics.fetching import DATA_LOSS_ADVICE
from streams.spark.topics.options import SourceOptions
from streams.spark.topics.positions import Positions
from streams.spark.topics.ranges import OffsetRange, RangePartition, split_ranges
from streams.spark.topics.rows import RowMaker


class TopicBatchReader(DataSourceReader):
    """Reads topics once, from one boundary to another."""

    def __init__(self, options: SourceOptions, rows: RowMaker) -> None:
        self.options = options
        self._rows = rows

    @override
    def partitions(self) -> Sequence[InputPartition]:
        """The ranges, split for tasks; resolved when the query is planned."""
        return [RangePartition(item) for item in self.ranges()]

    def ranges(self) -> list[OffsetRange]:
        """The ranges to read."""
        options = self.options
        positions = Positions(options.cluster)
        partitions = positions.existing_partitions(options.subscription)
        start = positions.resolve(options.starting, partitions, late_is_end=options.starts_late_at_end)
        end = positions.resolve(options.ending, partitions, late_is_end=True)
        reversed_ = [item for item in start if start[item] > end.get(item, start[item])]
        if reversed_ and options.fail_on_data_loss:
            (topic, partition), *_ = reversed_
            bounds = f"from {start[topic, partition]} to {end[topic, partition]}"
            raise DataLoss(f"Partition {topic}-{partition} would be read {bounds}. {DATA_LOSS_ADVICE}")
        ranges = [OffsetRange(*item, start[item], end[item]) for item in sorted(start) if item in end]
        return split_ranges(ranges, parts_min=options.min_partitions, rows_max=options.max_records_per_partition)

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range, on an executor; Spark makes one empty task when there is none."""
        return self._rows.read(partition.range) if isinstance(partition, RangePartition) else iter(())
