"""SQL gives what Kafka Streams gives: the same records through the service and through Kafka Streams make the same
tables. What Kafka Streams gave is kept; with its jars at hand it is asked again whether it still does.

A table is compared by its last values: how many updates lead there depends on how many records are read at once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

from tests.support.broker import BrokerProcess
from tests.support.kafka_streams import (
    Case,
    KafkaStreams,
    Output,
    Topics,
    case_names,
    last_values,
    needs_kafka_streams,
    read_case,
    running_kafka_streams,
)
from tests.support.patience import eventually
from tests.support.streams_service import StreamsService

STREAMS_OF_ROWS: Final = {"stream-stream", "stream-table"}
"""Topologies whose results are streams: every record counts."""
QUICK: Final = {
    "hopping_late",
    "session_merges",
    "stream_stream_left",
    "stream_table_left",
    "table_aggregate",
    "table_table_outer",
    "tumbling_final",
    "word_count",
}
"""One case of each kind, for every run."""
WITHOUT_TIMES: Final = {"table-table", "table-aggregate"}
"""Topologies whose rows have another ROWTIME here: for Kafka Streams it may be that of a row that was deleted."""
DEPARTURES: Final = {
    "session_random": "a record beyond gap and grace is a dead letter, even if it touches a long session that is open",
}
"""Cases whose result is another one here on purpose."""
JOINS: Final = {"inner": "JOIN", "left": "LEFT JOIN", "outer": "FULL OUTER JOIN"}
SOURCES: Final = {
    "lines": "STREAM {name} (K STRING KEY, LINE STRING)",
    "clicks": "STREAM {name} (K STRING KEY, PAGE STRING)",
    "people": "TABLE {name} (K STRING PRIMARY KEY, REGION STRING, AMOUNT INTEGER)",
    "left": "{kind} {name} (K STRING {key}, V STRING, F STRING)",
    "right": "{kind} {name} (K STRING {key}, W STRING)",
}
TABLES: Final = {"stream-table": {"right"}, "table-table": {"left", "right"}, "foreign-key": {"left", "right"}}
"""Which topics are tables."""


@pytest.fixture(scope="module")
def service(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamsService]:
    with StreamsService(tmp_path_factory.mktemp("streams"), bootstrap=broker.bootstrap) as process:
        yield process
        assert process.is_running, process.log_tail()


@pytest.fixture(scope="module")
def kafka_streams(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaStreams]:
    with running_kafka_streams(broker.bootstrap, tmp_path_factory.mktemp("kafka-streams")) as program:
        yield program


def marks_of(case: str) -> list[pytest.MarkDecorator]:
    """Whether a case is for every run, and whether it is known to differ."""
    departs = [pytest.mark.xfail(strict=True, reason=DEPARTURES[case])] if case in DEPARTURES else []
    return [*departs, *([] if case in QUICK else [pytest.mark.slow])]


@pytest.mark.parametrize("case", [pytest.param(name, marks=marks_of(name)) for name in case_names()])
def test_sql_gives_what_kafka_streams_gives(service: StreamsService, broker: BrokerProcess, case: str) -> None:
    wanted = read_case(case)
    topics = Topics(broker.bootstrap, wanted)
    topics.create()
    with statements_running(service, topics):
        for step in wanted.steps:
            topics.write(step)
            topics.await_read_by_queries()
        expected = comparable(wanted, wanted.result)
        eventually(lambda: comparable(wanted, topics.read_out()), lambda found: found == expected, timeout_s=20)


@pytest.mark.parametrize("case", [pytest.param(name, marks=needs_kafka_streams) for name in case_names()])
def test_kafka_streams_still_gives_what_was_recorded(kafka_streams: KafkaStreams, case: str) -> None:
    recorded = read_case(case)
    assert comparable(recorded, kafka_streams.run(recorded)) == comparable(recorded, recorded.result)


@contextmanager
def statements_running(service: StreamsService, topics: Topics) -> Iterator[None]:
    """The case as statements, until the block ends."""
    case, prefix = topics.case, topics.sql_prefix
    names = {topic: f"{prefix}{topic.upper()}" for topic in topics.of_case}
    formats = "KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON'"
    made: list[tuple[str, str]] = []
    try:
        for topic, name in names.items():
            is_table = topic == "people" or topic in TABLES.get(case.topology, ())
            kind, key = ("TABLE", "PRIMARY KEY") if is_table else ("STREAM", "KEY")
            columns = SOURCES[topic].format(kind=kind, name=name, key=key)
            service.ksql(f"CREATE {columns} WITH (KAFKA_TOPIC='{topics.id}-{topic}', {formats});")
            made.append((kind, name))
        for kind, name, topic, query in queries(case, names):
            full = f"{prefix}{name}"
            service.ksql(f"CREATE {kind} {full} WITH (KAFKA_TOPIC='{topics.id}-{topic}', {formats}) AS {query};")
            made.append((kind, full))
        yield
    finally:
        for kind, name in reversed(made):
            service.ksql(f"DROP {kind} {name};")


def queries(case: Case, names: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """What the statements make: STREAM or TABLE, its name, its topic, the query."""
    p = case.parameters
    changes = "EMIT FINAL" if p.get("is_final") else "EMIT CHANGES"
    grace = f"GRACE PERIOD {p.get('grace_ms')} MILLISECONDS"
    join = JOINS.get(str(p.get("kind")), "")
    match case.topology:
        case "word-count":
            words = names["lines"].replace("LINES", "WORDS")
            yield "STREAM", "WORDS", "words", f"SELECT K, EXPLODE(SPLIT(LINE, ' ')) AS WORD FROM {names['lines']}"
            yield "TABLE", "OUT", "out", f"SELECT WORD, COUNT(*) AS N FROM {words} GROUP BY WORD"
        case "windowed-count":
            advance = f", ADVANCE BY {p['advance_ms']} MILLISECONDS" if "advance_ms" in p else ""
            shape = "HOPPING" if advance else "TUMBLING"
            window = f"{shape} (SIZE {p['size_ms']} MILLISECONDS{advance}, {grace})"
            counted = f"SELECT K, COUNT(*) AS N FROM {names['clicks']} WINDOW {window} GROUP BY K {changes}"
            yield "TABLE", "OUT", "out", counted
        case "session-count":
            window = f"SESSION ({p['gap_ms']} MILLISECONDS, {grace})"
            counted = f"SELECT K, COUNT(*) AS N FROM {names['clicks']} WINDOW {window} GROUP BY K {changes}"
            yield "TABLE", "OUT", "out", counted
        case "table-aggregate":
            totals = "SELECT REGION, COUNT(*) AS N, SUM(AMOUNT) AS S"
            yield "TABLE", "OUT", "out", f"{totals} FROM {names['people']} GROUP BY REGION"
        case _:
            is_stream = case.topology in STREAMS_OF_ROWS
            within = f"WITHIN {p['within_ms']} MILLISECONDS {grace} " if case.topology == "stream-stream" else ""
            key = "ROWKEY AS K" if p["kind"] == "outer" else "L.K"
            on = "L.F = R.K" if case.topology == "foreign-key" else "L.K = R.K"
            joined = f"SELECT {key}, V, W FROM {names['left']} L {join} {names['right']} R {within}ON {on} {changes}"
            yield "STREAM" if is_stream else "TABLE", "OUT", "out", joined


def comparable(case: Case, outputs: Sequence[Output]) -> object:
    """What has to be the same: the records of a stream in any order, and each once where a result is final; the last
    values of a table with their times."""
    if case.topology in STREAMS_OF_ROWS or case.parameters.get("is_final"):
        return Counter(str(output) for output in outputs)
    rows = last_values(outputs)
    if case.topology in WITHOUT_TIMES:
        # Kafka Streams keeps groups without rows; ours are deleted with their last row.
        return {place: value for place, (value, _) in rows.items() if value.get("N") != 0}
    return rows
