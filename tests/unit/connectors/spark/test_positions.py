import pytest

from connect.api.engine import TopicChoice
from connectors.spark.positions import check_retained, plan_reload
from connectors.spark.spec import SinkSpec
from streams.errors import WrongOption
from streams.spark.commits.manifest import Reload

READ = {("orders", 0): 100, ("orders", 1): 7}
UPSERT = {"write.mode": "upsert", "table.format": "delta", "pk.mode": "record_key"}


def spec(**options: str) -> SinkSpec:
    given = {key.replace("_", "."): value for key, value in options.items()}
    kafka = {"bootstrap.servers": "localhost:9092"}
    return SinkSpec(
        connector="orders-sink",
        consumer=kafka,
        producer=kafka,
        admin=kafka,
        group="connect-orders-sink",
        topics=TopicChoice(names=("orders",)),
        options=given,
    )


def asked(sink: SinkSpec, start: int = 10, end: int = 20, partition: int = 0) -> Reload:
    return plan_reload(sink, READ, "orders", partition, start=start, end=end)


def test_a_range_that_was_read_is_replaced_in_the_table_of_its_topic() -> None:
    assert asked(spec(table="shop.${topic}")) == Reload(
        topic="orders", partition=0, start=10, end=20, tables=("shop.orders",)
    )


def test_an_upsert_reads_again_whatever_came_later() -> None:
    given = {key.replace(".", "_"): value for key, value in UPSERT.items()}
    assert (asked(spec(**given)).start, asked(spec(**given)).end) == (10, 100)


@pytest.mark.parametrize(("start", "end"), [(10, 101), (100, 200), (10, 10), (-1, 5)])
def test_what_was_not_read_yet_would_be_doubled_and_is_refused(start: int, end: int) -> None:
    with pytest.raises(WrongOption, match="end at 100 at most"):
        asked(spec(), start, end)


def test_the_error_for_a_partition_that_was_never_read_lists_those_that_were() -> None:
    with pytest.raises(WrongOption, match="orders-0, orders-1"):
        asked(spec(), partition=2)


def test_rows_that_could_not_be_found_are_refused() -> None:
    with pytest.raises(WrongOption, match="must have partition, offset"):
        asked(spec(metadata_columns="topic,timestamp"))


def test_rows_whose_records_are_gone_are_not_removed() -> None:
    again = asked(spec())
    check_retained(again, 10)
    with pytest.raises(WrongOption, match="must begin at 11 or later"):
        check_retained(again, 11)
