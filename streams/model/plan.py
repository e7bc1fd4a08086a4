"""The plan of a query: what one query of Spark reads, computes and writes. A document, so that it can be kept and sent.

A statement that needs more than one stateful step has several plans, joined by internal topics.

The view of a topic that steps read has the columns of its Source under their names (types as `spark_type` says), and
* `ROWTIME` BIGINT, `ROWPARTITION` INT, `ROWOFFSET` BIGINT; `WINDOWSTART`, `WINDOWEND` BIGINT if the source is windowed,
* `__time` TIMESTAMP: ROWTIME, with the watermark if the input has one,
* `__stream_time` BIGINT if asked for: the largest ROWTIME of the query so far, this record included,
* `__deleted` BOOLEAN for a table: the record has no value, so the other value columns are null.

The last view, which is written, has the columns of the sink under their names, `ROWTIME` BIGINT, for a windowed sink
`WINDOWSTART` and `WINDOWEND` BIGINT, and for a table `__deleted` BOOLEAN: true writes a tombstone.
Names are case-sensitive in all views.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from streams.model.sources import Column, OnError, Source

TIME: Final = "__time"
STREAM_TIME: Final = "__stream_time"
DELETED: Final = "__deleted"
RESERVED: Final = frozenset({TIME, STREAM_TIME, DELETED})
"""Names that no column of a user may have."""


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """When a record comes too late: the last window that it belongs to has been closed. Such records are dead letters.

    With `size_ms` 0 (joins), when it is older than `grace_ms` before the stream time.
    """

    size_ms: int
    advance_ms: int
    grace_ms: int


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that a query reads as a stream of records."""

    view: str
    source: Source
    starting: Literal["earliest", "latest"] = "latest"
    """Where a query without a checkpoint begins."""
    watermark_ms: int | None = None
    """The delay of the watermark on `__time`; None for no watermark."""
    lateness: Lateness | None = None
    is_internal: bool = False
    """Whether the topic was made by the statement itself."""


class SqlStep(msgspec.Struct, frozen=True, kw_only=True, tag="sql"):
    """A SELECT in Spark's SQL over earlier views."""

    view: str
    text: str
    functions: tuple[str, ...] = ()
    """The Python functions that it calls: those of `streams.functions`, and users' own (`udf:NAME`)."""


class LookupStep(msgspec.Struct, frozen=True, kw_only=True, tag="lookup"):
    """Join each row with the row of a table that has a key, as the table is when the batch runs.

    The rows of `input` get the columns of `columns` (pairs of a column of the table and its new name), null where the
    table has no such row; INNER drops those. A null key finds nothing.
    """

    view: str
    input: str
    table: Source
    key: str
    """The column of `input` that is looked up; of the type of the table's only key column."""
    columns: tuple[tuple[str, str], ...]
    kind: Literal["INNER", "LEFT"] = "LEFT"


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """An aggregate that a processor computes, one of ksqlDB's."""

    name: str
    """The column of its result."""
    function: str
    arguments: tuple[str, ...] = ()
    """Columns of the input."""
    literals: tuple[msgspec.Raw, ...] = ()
    """The literal arguments behind the columns, as JSON."""
    argument_types: tuple[str, ...] = ()
    type: str = "BIGINT"


class SessionAggregates(msgspec.Struct, frozen=True, kw_only=True, tag="sessions"):
    """Aggregates of session windows. Its rows: the keys, the aggregates, ROWTIME, WINDOWSTART, WINDOWEND, `__deleted`.

    A session that grows into another, or whose bounds change, is deleted under its old bounds first. Records that only
    fit sessions which have been closed are dropped and counted as late.
    """

    gap_ms: int
    grace_ms: int
    aggregates: tuple[Aggregate, ...]
    is_final: bool = False
    """Only closed sessions are given out, once."""


class Changes(msgspec.Struct, frozen=True, kw_only=True, tag="changes"):
    """What changed in a table: for each key of a batch a row with `__sign` -1 and the values before, if there were any,
    and one with `__sign` 1 and those after. If the row is deleted, there is only one, with `__sign` -2 and the values
    before. Columns: the keys, `columns`, ROWTIME, `__sign` INT, `__change` BIGINT (the same for both rows)."""

    columns: tuple[str, ...]


class UndoAggregates(msgspec.Struct, frozen=True, kw_only=True, tag="undo"):
    """Aggregates of rows that are added (`__sign` 1) and taken back (negative). Rows: the keys, the aggregates,
    ROWTIME, `__deleted` (no row is left)."""

    aggregates: tuple[Aggregate, ...]


class ForeignKeyJoin(msgspec.Struct, frozen=True, kw_only=True, tag="foreign-key"):
    """The right half of a foreign-key join, keyed by the right table's key.

    Rows with `__side` 0 are changes of left rows (as `Changes` gives them: `__sign`), those with 1 are right rows
    (`__deleted`). Rows given out: the left columns, the right columns, ROWTIME, `__deleted`. A left row that moves to
    another key is not deleted here: the other key gives out its row, or its deletion. Keys know nothing of each other,
    so that NewestRows has to follow.
    """

    left_key: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    kind: Literal["INNER", "LEFT"] = "INNER"


class NewestRows(msgspec.Struct, frozen=True, kw_only=True, tag="newest"):
    """The rows of each key without those that are out of date: a row is left out if an earlier one, deleted or not, has
    a larger `order`; of those of a batch, only the last one with the largest is given out.

    Behind a foreign-key join, whose rows for one left row come from different right keys in any order, in one batch or
    in several: the last row that is given out is the one of the last change of the left row. For each key there ever
    was, a number is kept.
    """

    order: str
    """A BIGINT column."""
    columns: tuple[str, ...]


Processor: TypeAlias = SessionAggregates | Changes | UndoAggregates | ForeignKeyJoin | NewestRows


class ProcessStep(msgspec.Struct, frozen=True, kw_only=True, tag="process"):
    """A processor with state for each key, in Python, as Spark runs it (`transformWithState`)."""

    view: str
    input: str
    keys: tuple[str, ...]
    processor: Processor
    output: tuple[Column, ...]
    """The columns of its rows with their types, without `__deleted`."""
    reads_watermark: bool = False


Step: TypeAlias = SqlStep | LookupStep | ProcessStep


class QueryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One query of Spark."""

    name: str
    """The query's id, and `-2`, `-3`, ... for the parts of a statement behind the first."""
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    """The last one makes the view that is written."""
    mode: Literal["append", "update"] = "append"
    sink: Source | None = None
    """The topic that is written; None when the rows go to a client."""
    is_sink_internal: bool = False
    columns: tuple[Column, ...] = ()
    """For a client: the columns of the rows in their order."""
    limit: int | None = None
    """For a client: how many rows."""
    has_state: bool = False
    on_error: OnError = "dlq"
    dead_letter_topic: str | None = None
    """None for no dead letters."""
    group: str | None = None
    """The consumer group whose offsets show how far it has read; no other plan has the same."""
    state_partitions: int | None = None
    """Fixed when the query starts for the first time."""


class TopicRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that has to exist before a query starts; it is made if it does not."""

    name: str
    partitions: int | None = None
    replicas: int | None = None
    configs: dict[str, str] = {}
    must_match: bool = False
    """Whether an existing topic with another number of partitions is an error."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A persistent query as the catalog keeps it."""

    id: str
    statement: str
    reads: tuple[str, ...]
    """The streams and tables that it reads."""
    writes: str
    """The stream or table that it fills."""
    plans: tuple[QueryPlan, ...]
    topics: tuple[TopicRequest, ...] = ()
    """Internal and dead-letter topics."""
    is_paused: bool = False
    properties: dict[str, str] = {}
    generation: int = 0
    """Increased when its state is thrown away, as for a replacement that begins anew."""
