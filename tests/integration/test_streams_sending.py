"""Batches of queries as transactions: each is written once, whatever happens between two runs."""

import pyarrow as pa
import pytest

from streams.model.plan import Input, QueryPlan
from streams.spark.queries.checkpoints import StateLost
from streams.spark.queries.sending import Output, Replaced, Sender
from streams.spark.queries.spec import QuerySpec
from streams.spark.queries.staging import RECORDS, Staged
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.streams_queries import fresh, read_topic, source


@pytest.fixture
def spec(broker: BrokerProcess) -> QuerySpec:
    topics = fresh("given"), fresh("sink")
    for topic in topics:
        create_topic(broker, topic, configs={"retention.ms": "-1"})
    given, sink = (source(topic, value={"N": "BIGINT"}) for topic in topics)
    name = fresh("CSAS")
    plan = QueryPlan(name=name, inputs=(Input(view="S", source=given),), steps=(), sink=sink, group=f"_streams-{name}")
    return QuerySpec(plan=plan, cluster={"bootstrap.servers": broker.bootstrap}, folder="unused")


def _output(spec: QuerySpec, batch: int, *values: bytes, end: int) -> Output:
    count = len(values)
    records = pa.RecordBatch.from_arrays(
        [
            pa.nulls(count, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array([0] * count, pa.int64()),
            pa.nulls(count, pa.int32()),
        ],
        schema=RECORDS,
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, RECORDS) as writer:
        writer.write_batch(records)
    staged = Staged(None, sink.getvalue().to_pybytes(), count)
    return Output(batch=batch, staged=(staged,), notes=(), ends={(spec.plan.inputs[0].source.topic, 0): end})


def _written(spec: QuerySpec) -> list[tuple[object, int]]:
    assert spec.plan.sink is not None
    found = read_topic(spec.cluster["bootstrap.servers"], spec.plan.sink.topic)
    return [(record.value, record.timestamp_ms) for record in found]


def _begun(spec: QuerySpec) -> Sender:
    sender = Sender(spec)
    sender.begin({spec.plan.inputs[0].source.topic})
    return sender


def test_a_batch_that_was_written_is_not_written_by_the_next_run(spec: QuerySpec) -> None:
    first = _begun(spec)
    assert (first.sent, first.send(_output(spec, 0, b"1", b"2", end=2))) == (-1, 2)
    second = _begun(spec)
    assert (second.sent, second.send(_output(spec, 0, b"1", b"2", end=2))) == (0, 0)
    assert second.send(_output(spec, 1, b"3", end=3)) == 1
    # A record of 1970 gets the first millisecond after it: for the library, 0 is the present.
    assert _written(spec) == [(1, 1), (2, 1), (3, 1)]
    second.close()
    first.close()


def test_a_run_that_was_replaced_writes_nothing_more(spec: QuerySpec) -> None:
    first, second = _begun(spec), _begun(spec)
    with pytest.raises(Replaced):
        first.send(_output(spec, 0, b"1", end=1))
    assert second.send(_output(spec, 0, b"2", end=1)) == 1
    assert _written(spec) == [(2, 1)]
    first.close()
    second.close()


def test_another_batch_of_the_same_number_is_refused(spec: QuerySpec) -> None:
    sender = _begun(spec)
    sender.send(_output(spec, 0, b"1", end=1))
    with pytest.raises(StateLost, match="CREATE OR REPLACE"):
        sender.send(_output(spec, 0, b"1", end=2))
    sender.close()


def test_where_a_query_begins_is_committed(spec: QuerySpec) -> None:
    topic = spec.plan.inputs[0].source.topic
    sender = Sender(spec)
    assert sender.begin({topic}) is None
    sender.begin_at({(topic, 0): 5})
    sender.close()
    again = Sender(spec)
    assert again.begin({topic}) == {(topic, 0): 5}
    assert again.sent == -1
    again.close()


def test_processed_records_of_a_repartition_topic_are_deleted(broker: BrokerProcess, spec: QuerySpec) -> None:
    assert spec.plan.sink is not None
    topic = spec.plan.sink.topic
    sender = _begun(spec)
    sender.send(_output(spec, 0, b"1", b"2", end=2))
    sender.delete_needless({(topic, 0): 1, (fresh("unknown"), 0): 0})
    assert _written(spec) == [(2, 1)]
    sender.delete_needless({(topic, 0): 100})  # more than there is: it is not an error of the query
    sender.close()


def test_without_transactions_a_repeated_batch_is_known_as_well(spec: QuerySpec) -> None:
    import msgspec

    plain = msgspec.structs.replace(spec, transactional=False)
    sender = _begun(plain)
    assert sender.send(_output(plain, 0, b"1", end=1)) == 1
    sender.close()
    again = _begun(plain)
    assert (again.sent, again.send(_output(plain, 0, b"1", end=1))) == (0, 0)
    assert _written(plain) == [(1, 1)]
    again.close()
