import pytest

from streams.errors import WrongOption
from streams.spark.topics.options import Subscription, source_options

SERVERS = {"kafka.bootstrap.servers": "one:9092,two:9092"}
ORDERS = {**SERVERS, "subscribe": "orders"}


def test_what_is_not_said_is_as_in_sparks_kafka_source() -> None:
    stream = source_options(ORDERS, is_stream=True)
    batch = source_options(ORDERS, is_stream=False)
    assert (stream.starting.kind, batch.starting.kind, batch.ending.kind) == ("latest", "earliest", "latest")
    assert stream.fail_on_data_loss
    assert not stream.include_headers
    assert (stream.max_offsets, stream.min_offsets, stream.min_partitions, stream.group_id) == (None,) * 4
    assert stream.max_trigger_delay_ms == 15 * 60 * 1000
    assert stream.cluster.isolation == "read_committed"


def test_names_are_found_however_they_are_spelt() -> None:
    given = {**SERVERS, "SUBSCRIBE": "Orders", "maxoffsetspertrigger": "7", "FailOnDataLoss": "FALSE"}
    options = source_options(given, is_stream=True)
    assert options.subscription == Subscription("subscribe", topics=("Orders",))
    assert (options.max_offsets, options.fail_on_data_loss) == (7, False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"subscribe": "a, b,a"}, Subscription("subscribe", topics=("a", "b"))),
        ({"subscribePattern": "a.*"}, Subscription("subscribePattern", pattern="a.*")),
        ({"assign": '{"a": [1, 0]}'}, Subscription("assign", partitions=(("a", 0), ("a", 1)))),
    ],
)
def test_one_of_three_ways_to_subscribe(given: dict[str, str], expected: Subscription) -> None:
    assert source_options({**SERVERS, **given}, is_stream=True).subscription == expected


def test_properties_of_java_clients_reach_the_client_in_its_own_names() -> None:
    secret = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    given = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": secret,
        "kafka.group.id": "g",
        "kafka.isolation.level": "read_uncommitted",
        "groupIdPrefix": "ignored",
    }
    options = source_options({**ORDERS, **given}, is_stream=True)
    login = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    assert options.cluster.properties == login
    assert (options.cluster.bootstrap_servers, options.cluster.isolation) == ("one:9092,two:9092", "read_uncommitted")
    assert options.group_id == "g"


def test_one_time_comes_before_times_and_these_before_offsets() -> None:
    offsets, times, one = '{"orders": {"0": 5}}', '{"orders": {"0": 1000}}', "2000"
    every = {"startingOffsets": offsets, "startingOffsetsByTimestamp": times, "startingTimestamp": one}
    kinds = []
    while every:
        kinds.append(source_options({**ORDERS, **every}, is_stream=True).starting.kind)
        every.popitem()
    assert kinds == ["timestamp", "timestamps", "offsets"]


@pytest.mark.parametrize(
    ("text", "expected_ms"), [("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("2 min", 120_000), ("1h", 3_600_000)]
)
def test_durations(text: str, expected_ms: int) -> None:
    assert source_options({**ORDERS, "maxTriggerDelay": text}, is_stream=True).max_trigger_delay_ms == expected_ms


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers: must be given"),
        ({"subscribePattern": "x"}, "exactly one of"),
        ({"subscribe": " , "}, "subscribe: must name topics"),
        ({"startingOffset": "earliest"}, "'earliest' for option startingOffset: is unknown; options are assign"),
        ({"startingOffsets": "first"}, "'first' for option startingOffsets: must be earliest, latest, or JSON"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "startingOffsets: offsets must be -2"),
        ({"startingOffsets": '{"orders": {"0": "1"}}'}, "startingOffsets: must be JSON"),
        ({"startingOffsets": '{"orders": [1]}'}, "startingOffsets: must be JSON"),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": -1}}'}, "startingOffsetsByTimestamp: times"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp: must be a whole number, at least 0"),
        ({"startingOffsetsByTimestampStrategy": "x"}, "Strategy: must be one of error, latest"),
        ({"endingOffsets": "latest"}, "endingOffsets: is only for batches"),
        ({"endingTimestamp": "5"}, "endingTimestamp: is only for batches"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger: must be a whole number, at least 1"),
        ({"minPartitions": "many"}, "'many' for option minPartitions"),
        ({"maxOffsetsPerTrigger": "9" * 30}, "maxOffsetsPerTrigger"),
        ({"failOnDataLoss": "yes"}, "failOnDataLoss: must be true or false"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay: must be a duration"),
        ({"decode": "xml"}, "decode: must be one of none, avro"),
        ({"kafka.isolation.level": "dirty"}, "kafka.isolation.level: must be read_committed or"),
        ({"kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset: does not apply to queries"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit: does not apply to queries"),
        ({"kafka.value.deserializer": "x"}, "kafka.value.deserializer: is not needed"),
        ({"kafka.ssl.truststore.location": "/x.jks"}, "kafka.ssl.truststore.location: Java key stores"),
    ],
)
def test_what_cannot_work_is_refused_with_what_is_allowed(given: dict[str, str], expected: str) -> None:
    with pytest.raises(WrongOption) as caught:
        source_options({**ORDERS, **given}, is_stream=True)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets: a batch cannot start at the latest"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "startingOffsets: a batch cannot start at the latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets: a batch cannot end at the earliest"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "endingOffsets: a batch cannot end at the earliest"),
    ],
)
def test_what_no_batch_can_be_is_refused(given: dict[str, str], expected: str) -> None:
    with pytest.raises(WrongOption) as caught:
        source_options({**ORDERS, **given}, is_stream=False)
    assert expected in str(caught.value)


@pytest.mark.parametrize("text", ["[1", "(", "*"])
def test_a_pattern_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(WrongOption, match="subscribePattern: must be a regular expression"):
        source_options({**SERVERS, "subscribePattern": text}, is_stream=True)


@pytest.mark.parametrize("text", ["", "{}", '{"a": 0}', '{"a": ["0"]}', '{"a": [-1]}', '["a"]', '{"a": [true]}'])
def test_an_assignment_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(WrongOption, match="assign: must be JSON such as"):
        source_options({**SERVERS, "assign": text}, is_stream=True)


@pytest.mark.parametrize("key", ["sasl.password", "kafka.sasl.jaas.config", "kafka.ssl.keystore.password"])
def test_a_secret_is_not_repeated_when_its_option_is_refused(key: str) -> None:
    with pytest.raises(WrongOption) as raised:
        source_options({**ORDERS, key: "hush", "kafka.ssl.keystore.location": "/store.jks"}, is_stream=True)
    assert "hush" not in str(raised.value)
    assert key in str(raised.value)
