import pytest

from streams.server.errors import BadRequest
from streams.server.properties import check_name, ignored, listing, resolve, resolve_all
from streams.settings import StreamsSettings

SETTINGS = StreamsSettings.parse(
    {
        "ksql.streams.auto.offset.reset": "latest",
        "ksql.properties.overrides.denylist": "num.stream.threads",
        "ksql.service.id": "shop_",
    }
)


@pytest.mark.parametrize(
    "name,value,resolved",
    [
        ("auto.offset.reset", "earliest", ("auto.offset.reset", "earliest")),
        ("auto.offset.reset", "EARLIEST", ("auto.offset.reset", "earliest")),
        ("ksql.streams.auto.offset.reset", "latest", ("auto.offset.reset", "latest")),
        ("consumer.auto.offset.reset", "latest", ("consumer.auto.offset.reset", "latest")),
        ("cache.max.bytes.buffering", 0, ("cache.max.bytes.buffering", "0")),
        ("processing.guarantee", "exactly_once_v2", ("processing.guarantee", "exactly_once_v2")),
        ("producer.linger.ms", "5", ("producer.linger.ms", "5")),
        ("topic.retention.ms", "-1", ("topic.retention.ms", "-1")),
        ("ksql.query.pull.table.scan.enabled", True, ("ksql.query.pull.table.scan.enabled", "true")),
        ("ksql.functions.collect_list.limit", 10, ("ksql.functions.collect_list.limit", "10")),
        ("ksql.query.push.v2.enabled", "true", ("ksql.query.push.v2.enabled", "true")),
        ("ksql.query.pull.interpreter.enabled", "x", ("ksql.query.pull.interpreter.enabled", "x")),
        ("ksql.sink.partitions", 4, ("ksql.sink.partitions", "4")),
    ],
)
def test_known_properties(name: str, value: object, resolved: tuple[str, str]) -> None:
    assert resolve(name, value, SETTINGS) == resolved


@pytest.mark.parametrize(
    "name,value,message",
    [
        ("foo", "1", "Not recognizable as ksql, streams, consumer, or producer property: 'foo'"),
        ("ksql.foo", "1", "Not recognizable as ksql, streams, consumer, or producer property: 'ksql.foo'"),
        ("ksql.streams.foo", "1", "Not recognizable"),
        ("spark.master", "1", "Not recognizable"),
        ("ksql.service.id", "x", r"prohibited by the KSQL server .*: \[ksql.service.id\]"),
        ("num.stream.threads", "1", r"prohibited by the KSQL server .*: \[num.stream.threads\]"),
        ("ksql.streams.num.stream.threads", "1", "prohibited by the KSQL server"),
        ("bootstrap.servers", "x", "Cannot override property 'bootstrap.servers'"),
        ("ssl.keystore.location", "x", "Cannot override property 'ssl.keystore.location'"),
        ("ksql.extension.dir", "x", "Cannot override property"),
        ("auto.offset.reset", "none", "must be one of earliest, latest"),
        ("commit.interval.ms", "soon", "must be a whole number"),
        ("processing.guarantee", "perhaps", "must be one of at_least_once"),
        ("ksql.sink.partitions", "0", "must be at least 1"),
        ("auto.offset.reset", ["earliest"], "must be text, a number or a boolean, not list"),
    ],
)
def test_refused_properties(name: str, value: object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        resolve(name, value, SETTINGS)


def test_properties_of_a_request_without_those_that_are_about_itself() -> None:
    given = {"ksql.request.pull.query.skip.forwarding": True, "max.task.idle.ms": 5, "auto.offset.reset": None}
    assert resolve_all(given, SETTINGS) == {"max.task.idle.ms": "5"}


def test_properties_without_effect() -> None:
    given = ["auto.offset.reset", "num.stream.threads", "ksql.functions.x", "ksql.sink.partitions", "ksql.udf.x"]
    assert ignored(given) == ["ksql.udf.x", "num.stream.threads"]


def test_names_are_checked_alone() -> None:
    assert check_name("ksql.streams.commit.interval.ms", SETTINGS) == "commit.interval.ms"


def test_listing_tells_where_values_come_from() -> None:
    shown = listing(SETTINGS, {"auto.offset.reset": "earliest", "ksql.query.trigger.ms": "500"})
    properties = {one["name"]: one for one in shown["properties"]}
    assert properties["ksql.streams.auto.offset.reset"]["value"] == "earliest"
    assert properties["ksql.query.trigger.ms"] == {
        "name": "ksql.query.trigger.ms",
        "scope": "KSQL",
        "value": "500",
        "editable": True,
        "level": "SERVER",
    }
    assert (properties["ksql.service.id"]["value"], properties["ksql.service.id"]["editable"]) == ("shop_", False)
    assert shown["overwrittenProperties"] == ["ksql.query.trigger.ms", "ksql.streams.auto.offset.reset"]
    assert "ksql.service.id" not in shown["defaultProperties"]
    assert "ksql.max.push.queries" in shown["defaultProperties"]
    assert not any("password" in name for name in properties)
