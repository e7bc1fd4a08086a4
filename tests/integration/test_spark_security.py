"""Topics of a cluster with TLS and users as a source and a sink of Spark: who logs in how, and what is never shown."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, ResourceType
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connect.api.engine import TopicChoice
from connectors.spark.spec import SinkSpec
from core_broker.client.admin import Admin
from core_broker.client.errors import NotAllowed
from core_broker.client.java_properties import to_librdkafka
from core_broker.client.settings import ClientSettings
from streams.spark.topics.source import register
from tests.support.connect_access import ALICE, add_users, allow_alice
from tests.support.patience import eventually
from tests.support.secret_search import forms_of
from tests.support.secured import ADMIN, ADMIN_PASSWORD, Certificates, SecuredBroker, client_properties
from tests.support.spark_java import needs_java
from tests.support.spark_session import small_session
from tests.support.spark_worker import SparkWorker

pytestmark = [
    needs_java,
    pytest.mark.timeout(900),
    # Connections of Spark to Python are closed when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_PATIENCE_S: Final = 240
_WRONG: Final = "not-the-password"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("secured"), certificates) as running:
        yield running


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    properties = {"spark.sql.catalogImplementation": "in-memory", "spark.ui.showConsoleProgress": "false"}
    with small_session(tmp_path_factory.mktemp("spark"), properties) as session:
        register(session)
        yield session


@pytest.fixture
def java_names(broker: SecuredBroker, certificates: Certificates) -> dict[str, str]:
    """The options of a login as people know them from Spark's Kafka source."""
    return _options(broker, client_properties(certificates))


@pytest.fixture
def librdkafkas_names(broker: SecuredBroker, certificates: Certificates) -> dict[str, str]:
    return _options(broker, to_librdkafka(client_properties(certificates).items()))


def _options(broker: SecuredBroker, properties: Mapping[str, str]) -> dict[str, str]:
    named = {f"kafka.{key}": value for key, value in properties.items()}
    return {"kafka.bootstrap.servers": broker.address, **named}


@pytest.fixture
def topic(broker: SecuredBroker, name: str) -> str:
    plain = f"127.0.0.1:{broker.plain_port}"
    Admin(ClientSettings(bootstrap_servers=plain)).create_topic(name, partitions=1)
    producer = Producer({"bootstrap.servers": plain})
    for value in ("one", "two"):
        producer.produce(name, value)
    assert producer.flush(30) == 0
    return name


def _values(rows: DataFrame) -> list[str]:
    return sorted(bytes(row.value).decode() for row in rows.select("value").collect())


def test_a_batch_is_read_and_written_with_a_login_in_javas_names(
    spark: SparkSession, java_names: dict[str, str], topic: str
) -> None:
    reader = spark.read.format("caudal").options(**java_names, subscribe=topic)
    assert _values(reader.load()) == ["one", "two"]
    new = spark.createDataFrame([("three",)], "value STRING")
    new.write.format("caudal").mode("append").options(**java_names, topic=topic).save()
    assert _values(reader.load()) == ["one", "three", "two"]


def test_a_stream_is_copied_and_its_password_is_in_no_plan_checkpoint_or_progress(
    spark: SparkSession, librdkafkas_names: dict[str, str], java_names: dict[str, str], topic: str, tmp_path: Path
) -> None:
    rows = spark.readStream.format("caudal").options(**java_names, subscribe=topic, startingOffsets="earliest").load()
    writer = rows.select("key", "value").writeStream.format("caudal").options(**librdkafkas_names, topic=topic)
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(_PATIENCE_S)
    assert query.exception() is None
    batch = spark.read.format("caudal").options(**java_names, subscribe=topic).load()
    assert _values(batch) == ["one", "one", "two", "two"]  # it was copied to itself
    shown = [
        str(query._jsq.explainInternal(True)),
        "".join(progress.json for progress in query.recentProgress),
        str(batch._jdf.queryExecution().toString()),
        *(file.read_bytes().decode(errors="replace") for file in tmp_path.rglob("*") if file.is_file()),
    ]
    assert [text for text in shown if ADMIN_PASSWORD in text] == []


def test_a_user_reads_and_writes_what_rules_allow(
    spark: SparkSession, broker: SecuredBroker, certificates: Certificates, topic: str
) -> None:
    plain = f"127.0.0.1:{broker.plain_port}"
    add_users(plain, [ALICE])
    login = _options(broker, client_properties(certificates, *ALICE, "SCRAM-SHA-512"))
    row = spark.createDataFrame([("three",)], "value STRING")

    def read() -> list[str]:
        return _values(spark.read.format("caudal").options(**login, subscribe=topic).load())

    def write() -> None:
        row.write.format("caudal").mode("append").options(**login, topic=topic).save()

    with pytest.raises(PySparkException, match="do not exist, or this user may not see them"):
        read()
    allow_alice(plain, ResourceType.TOPIC, topic, AclOperation.READ)
    assert read() == ["one", "two"]
    with pytest.raises(PySparkException, match="(?i)authoriz|not allowed|may not") as refused:
        write()
    assert ALICE[1] not in str(refused.value)
    allow_alice(plain, ResourceType.TOPIC, topic, AclOperation.WRITE)
    write()


def test_a_wrong_password_ends_a_query_at_once_with_the_reason(
    spark: SparkSession, broker: SecuredBroker, certificates: Certificates, topic: str, tmp_path: Path
) -> None:
    wrong = _options(broker, client_properties(certificates, ADMIN, _WRONG))
    with pytest.raises(PySparkException, match="the name admin or its password is wrong") as read:
        spark.read.format("caudal").options(**wrong, subscribe=topic).load().collect()
    row = spark.createDataFrame([("x",)], "value STRING")
    with pytest.raises(PySparkException, match="the name admin or its password is wrong") as written:
        row.write.format("caudal").mode("append").options(**wrong, topic=topic).save()
    rows = spark.readStream.format("caudal").options(**wrong, subscribe=topic).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    with pytest.raises(PySparkException, match="the name admin or its password is wrong") as streamed:
        query.awaitTermination(_PATIENCE_S)
    assert [error for error in (read, written, streamed) if _WRONG in str(error.value)] == []


def test_an_authority_that_is_not_trusted_is_named(
    spark: SparkSession, java_names: dict[str, str], topic: str, tmp_path: Path
) -> None:
    other = Certificates(tmp_path)
    options = {**java_names, "kafka.ssl.truststore.location": str(other.ca_file)}
    with pytest.raises(PySparkException, match="the certificate is not trusted"):
        spark.read.format("caudal").options(**options, subscribe=topic).load().collect()


def test_an_option_that_is_refused_does_not_show_its_password(
    spark: SparkSession, java_names: dict[str, str], topic: str
) -> None:
    login = {"kafka.sasl.jaas.config": f'x.Krb5LoginModule required password="{_WRONG}";'}
    with pytest.raises(PySparkException, match="only PLAIN and SCRAM") as raised:
        spark.read.format("caudal").options(**{**java_names, **login}, subscribe=topic).load().collect()
    assert _WRONG not in str(raised.value)


@pytest.mark.parametrize("client", ["consumer", "producer", "admin"])
def test_a_sink_whose_login_is_refused_says_so_before_it_begins(
    broker: SecuredBroker, certificates: Certificates, client: str
) -> None:
    def properties(password: str) -> dict[str, str]:
        given = client_properties(certificates, ADMIN, password)
        return {"bootstrap.servers": broker.address, **to_librdkafka(given.items())}

    right = properties(ADMIN_PASSWORD)
    known = SinkSpec(
        connector="orders", group="g", topics=TopicChoice(), options={}, consumer=right, producer=right, admin=right
    )
    known.check_logins()
    sink = msgspec.structs.replace(known, **{client: properties(_WRONG)})
    with pytest.raises(NotAllowed, match="its password is wrong") as raised:
        sink.check_logins()
    assert _WRONG not in f"{sink!r} {raised.value}"


def test_a_sink_connector_logs_in_as_it_is_told_and_nothing_of_the_engine_shows_how(
    broker: SecuredBroker, certificates: Certificates, tmp_path: Path, topic: str
) -> None:
    plain = f"127.0.0.1:{broker.plain_port}"
    add_users(plain, [ALICE])
    allow_alice(plain, ResourceType.TOPIC, topic, AclOperation.READ)
    of_worker = to_librdkafka(client_properties(certificates).items())
    of_alice = client_properties(certificates, *ALICE, "SCRAM-SHA-512")
    (tmp_path / "events").mkdir()
    settings = {f"client.{key}": text for key, text in of_worker.items()}
    settings |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (tmp_path / "events").as_uri()}
    with SparkWorker(tmp_path / "worker", bootstrap=broker.address, settings=settings) as worker:
        config = {
            "connector.class": "SparkSink",
            "topics": topic,
            "table": "orders",
            "trigger.interval.ms": "500",
            "value.converter": "JsonConverter",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{topic}-dead",
            **{f"consumer.override.{key}": text for key, text in of_alice.items()},
        }
        worker.create("orders", config)
        producer = Producer({"bootstrap.servers": plain})
        producer.produce(topic, _ROW)
        assert producer.flush(30) == 0
        eventually(lambda: list(worker.table("orders").rglob("*.parquet")), timeout_s=_PATIENCE_S, pause_s=0.5)
        # The two records of the topic that are no rows: the worker's own user has written them.
        eventually(lambda: len(worker.json("GET", "/connectors/orders/dlq")["records"]), lambda count: count == 2)
        engine = worker.engine()
        assert engine is not None
        shown = [str([*process.cmdline(), *process.environ().values()]).encode() for process in engine.children(True)]
        shown += [
            worker.ask("GET", f"/connectors/orders{path}").content for path in ("", "/config", "/tasks", "/status")
        ]
        files = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert any("events" in str(file) for file in files)
    for secret in (ALICE[1], ADMIN_PASSWORD):
        forms = forms_of(secret)
        assert [str(file) for file, content in files.items() if any(form in content for form in forms)] == []
        assert not any(form in one for one in shown for form in forms)


_ROW: Final = msgspec.json.encode(
    {
        "schema": {"type": "struct", "fields": [{"field": "id", "type": "int32", "optional": False}]},
        "payload": {"id": 1},
    }
)
