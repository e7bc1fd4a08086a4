"""Processors as Spark runs them: one state for each key, which is read and written once in a batch."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from typing_extensions import override

from streams.functions.aggregates import aggregator
from streams.functions.states import Aggregator
from streams.model.plan import DELETED, Aggregate, ProcessStep
from streams.spark.queries.processors.rows import Fields, argument_types, output_names
from streams.spark.queries.processors.stored import dump, read


class KeyedProcessor(StatefulProcessor):
    """A processor whose state is one value for each key. Its rows have the columns of the step, in their order."""

    def __init__(self, step: ProcessStep, extensions: str) -> None:
        self.step = step
        self.extensions = extensions
        self.names = output_names(step)
        self.make = Row(*self.names)

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.state = handle.getValueState("state", "value binary")
        self.prepare()

    def prepare(self) -> None:
        """Make what lives as long as a batch."""

    def load(self) -> Any:
        """The state of the key, None if it has none."""
        found = self.state.get()
        return None if found is None else read(found[0])

    def save(self, value: Any) -> None:
        """Replace the state of the key."""
        self.state.update((dump(value),))

    @override
    def close(self) -> None:
        pass


class AggregateProcessor(KeyedProcessor):
    """A processor of aggregates."""

    @property
    @abstractmethod
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Those of the step."""

    @override
    def prepare(self) -> None:
        self.aggregators: list[Aggregator[Any]] = [
            aggregator(one, extensions=self.extensions) for one in self.aggregates
        ]
        self.fields = Fields(argument_types(self.aggregates))

    def picks(self) -> list[Any]:
        """What takes the arguments of each aggregate out of a row."""
        return [self.fields.pick_all(one.arguments) for one in self.aggregates]

    def row(self, key: Sequence[object], results: Sequence[object] | None, others: Mapping[str, object]) -> Row:
        """A row of the step."""
        values: dict[str, object] = dict(zip(self.step.keys, key, strict=True))
        if results is not None:
            values |= {one.name: result for one, result in zip(self.aggregates, results, strict=True)}
        values |= others
        values[DELETED] = results is None
        return self.make(*(values.get(name) for name in self.names))
