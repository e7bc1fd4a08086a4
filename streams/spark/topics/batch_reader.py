"""Topics as a batch source: what is there between two boundaries."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from typing_extensions import override

from streams.errors import DataLoss
from streams.spark.topics.options import SourceOptions
from streams.spark.topics.positions import Positions
from streams.spark.topics.ranges import OffsetRange, RangePartition, divided
from streams.spark.topics.reading import HOW_TO_GO_ON
from streams.spark.topics.rows import RowMaker


class TopicBatchReader(DataSourceReader):
    """Reads topics once, from one boundary to another."""

    def __init__(self, options: SourceOptions, rows: RowMaker) -> None:
        self.options = options
        self._rows = rows

    @override
    def partitions(self) -> Sequence[InputPartition]:
        """The ranges, cut for tasks; resolved when the query is planned."""
        return [RangePartition(item) for item in self.ranges()]

    def ranges(self) -> list[OffsetRange]:
        """The ranges that are to be read."""
        options = self.options
        positions = Positions(options.cluster)
        places = positions.existing_places(options.subscription)
        start = positions.resolved(options.starting, places, late_is_end=options.starts_late_at_end)
        end = positions.resolved(options.ending, places, late_is_end=True)
        turned = [place for place in start if start[place] > end.get(place, start[place])]
        if turned and options.fail_on_data_loss:
            topic, partition = turned[0]
            told = f"Partition {topic}-{partition} would be read from {start[turned[0]]} to {end[turned[0]]}"
            raise DataLoss(f"{told}. {HOW_TO_GO_ON}")
        ranges = [OffsetRange(*place, start[place], end[place]) for place in sorted(start) if place in end]
        return divided(ranges, parts_min=options.min_partitions, rows_max=options.max_records_per_partition)

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range, on an executor; Spark makes one empty task when there is none."""
        return self._rows.read(partition.range) if isinstance(partition, RangePartition) else iter(())
