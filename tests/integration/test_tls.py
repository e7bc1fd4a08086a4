"""Listeners with TLS as clients meet them: librdkafka, kafka-python, aiokafka, kcat, OpenSSL and Python.

With KAFKA_JARS they are those of Apache Kafka, of which the same is asked.
"""

import asyncio
import datetime as dt
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka import KafkaConsumer, KafkaProducer

from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from core_broker.protocol.messages.metadata import MetadataRequest
from core_broker.service.clock import SystemClock
from tests.support.broker import BrokerProcess
from tests.support.certificates import Authority, Identity
from tests.support.kafka import KAFKA_JARS, OURS_ALONE
from tests.support.patience import eventually
from tests.support.sasl_broker import JAAS
from tests.support.secret_search import places_with_secrets
from tests.support.service import ServiceFailed
from tests.support.tls_broker import TlsBroker
from tests.support.wire import frame

TIMEOUT_S = 60
MIB = 1 << 20


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    with TlsBroker(tmp_path_factory.mktemp("tls")) as process:
        yield process


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    """A broker that requires certificates of its clients, and accepts only those of the applications."""
    process = TlsBroker(tmp_path_factory.mktemp("mutual"))
    process.settings |= {
        "listener.name.external.ssl.client.auth": "required",
        "listener.name.external.ssl.truststore.location": str(process.trusted),
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),OU=Apps,O=Acme$/$1/L",
        "request.log.enable": "true",
    }
    with process:
        yield process


def app(broker: TlsBroker, subject: str = "CN=Billing,OU=Apps,O=Acme") -> Identity:
    return broker.authority.issue(subject)


def logged(broker: BrokerProcess, text: str) -> None:
    """What our log says; Apache Kafka has words of its own."""
    if KAFKA_JARS is None:
        eventually(lambda: text in broker.log_text())


def answers(connection: socket.socket) -> bool:
    """Whether requests are answered on a connection."""
    connection.sendall(frame(ApiVersionsRequest("test", "1"), 3))
    return len(connection.recv(4)) == 4


def round_trip(settings: dict[str, str], topic: str, value: bytes, count: int = 1) -> None:
    producer = Producer({**settings, "message.max.bytes": 1_048_000, "queue.buffering.max.kbytes": 200_000})
    failures: list[object] = []
    for number in range(count):
        producer.produce(
            topic, value, str(number), on_delivery=lambda error, _: failures.append(error) if error else None
        )
    assert producer.flush(TIMEOUT_S) == 0
    assert failures == []
    with closing(
        Consumer({**settings, "group.id": f"{topic}-readers", "fetch.message.max.bytes": 8 * MIB})
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        for number in range(count):
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            assert message.error() is None
            assert (message.key(), message.value()) == (str(number).encode(), value)


# -- clients -----------------------------------------------------------------------------------------------------------


def test_librdkafka_produces_and_consumes(broker: TlsBroker) -> None:
    round_trip(broker.client_settings(), "librdkafka", b"x" * 1000, 1000)


def test_a_hundred_megabytes_go_through(broker: TlsBroker) -> None:
    round_trip(broker.client_settings(), "large", bytes(range(256)) * 4000, 100)


def test_kafka_python_produces_and_consumes(broker: TlsBroker) -> None:
    settings = {
        "bootstrap_servers": broker.tls_address,
        "security_protocol": "SSL",
        "ssl_cafile": str(broker.trusted),
    }
    with closing(KafkaProducer(**settings)) as producer:
        producer.send("kafka-python", b"hello").get(TIMEOUT_S)
    consumer = KafkaConsumer("kafka-python", auto_offset_reset="earliest", consumer_timeout_ms=30_000, **settings)
    with closing(consumer):
        assert next(consumer).value == b"hello"


async def test_aiokafka_produces_and_consumes(broker: TlsBroker) -> None:
    settings = {
        "bootstrap_servers": broker.tls_address,
        "security_protocol": "SSL",
        "ssl_context": broker.client_context(),
    }
    async with asyncio.timeout(TIMEOUT_S):
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait("aiokafka", b"hello")
        async with AIOKafkaConsumer("aiokafka", auto_offset_reset="earliest", **settings) as consumer:
            assert (await consumer.getone()).value == b"hello"


def test_kcat_lists_the_encrypted_address(broker: TlsBroker) -> None:
    command = ["kcat", "-b", broker.tls_address, "-X", "security.protocol=ssl", "-X"]
    command += [f"ssl.ca.location={broker.trusted}", "-L"]
    assert f"at {broker.tls_address}" in subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_openssl_verifies_the_whole_chain(broker: TlsBroker) -> None:
    command = ["openssl", "s_client", "-connect", broker.tls_address, "-CAfile", str(broker.trusted)]
    command += ["-verify_return_error", "-verify_ip", "127.0.0.1"]
    found = subprocess.run(command, capture_output=True, check=True, text=True, input="").stdout
    assert "Verify return code: 0 (ok)" in found


def test_each_listener_gives_its_own_addresses(broker: TlsBroker) -> None:
    for settings, address in (
        ({"bootstrap.servers": broker.bootstrap}, broker.bootstrap),
        (broker.client_settings(), broker.tls_address),
    ):
        (node,) = AdminClient({**settings}).list_topics(timeout=TIMEOUT_S).brokers.values()
        assert f"{node.host}:{node.port}" == address


# -- what is negotiated ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls(broker: TlsBroker, version: ssl.TLSVersion) -> None:
    context = broker.client_context()
    context.minimum_version = context.maximum_version = version
    with broker.connect(context) as connection:
        assert connection.version() == version.name.replace("_", ".")
        assert answers(connection)


@OURS_ALONE
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_resumed(broker: TlsBroker, version: ssl.TLSVersion) -> None:
    context = broker.client_context()
    context.minimum_version = context.maximum_version = version
    assert is_resumed(broker, context, session_of(broker, context))


def test_where_certificates_are_asked_for_there_are_no_tickets(mutual: TlsBroker) -> None:
    context = mutual.client_context(app(mutual))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    assert not is_resumed(mutual, context, session_of(mutual, context))


@OURS_ALONE
def test_no_session_is_resumed_once_the_stores_have_changed(tmp_path: Path) -> None:
    broker = TlsBroker(tmp_path)
    trust_store = {"listener.name.external.ssl.truststore.location": str(broker.trusted)}
    broker.settings |= {"listener.name.external.ssl.client.auth": "required", **trust_store}
    with broker:
        context = broker.client_context(app(broker))
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        session = session_of(broker, context)
        assert is_resumed(broker, context, session)
        broker.authority.save(broker.trusted)
        eventually(lambda: not is_resumed(broker, context, session))


@OURS_ALONE
def test_no_session_is_resumed_once_the_certificate_has_expired(mutual: TlsBroker) -> None:
    expires = dt.datetime.fromtimestamp(SystemClock().now_ms() / 1000 + 3, dt.UTC)
    context = mutual.client_context(mutual.authority.issue("CN=Billing,OU=Apps,O=Acme", expires=expires))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    session = session_of(mutual, context)
    assert is_resumed(mutual, context, session)

    def is_refused() -> bool:
        with mutual.connect(context, session=session) as connection, suppress(ConnectionError, ssl.SSLError):
            return not answers(connection)
        return True

    eventually(is_refused)
    logged(mutual, "the certificate has expired")


def session_of(broker: TlsBroker, context: ssl.SSLContext) -> ssl.SSLSession | None:
    with broker.connect(context) as connection:
        assert answers(connection)  # the tickets of TLS 1.3 come before it
        return connection.session


def is_resumed(broker: TlsBroker, context: ssl.SSLContext, session: ssl.SSLSession | None) -> bool:
    with broker.connect(context, session=session) as connection:
        assert answers(connection)
        return bool(connection.session_reused)


def test_one_version_and_one_cipher_suite(tmp_path: Path) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    with TlsBroker(tmp_path, settings={"ssl.enabled.protocols": "TLSv1.2", "ssl.cipher.suites": suite}) as broker:
        with broker.connect() as connection:
            assert connection.cipher() == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2", 128)
        context = broker.client_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        with pytest.raises(ssl.SSLError):
            broker.connect(context)
        logged(broker, "the client allows none of ssl.enabled.protocols")


# -- certificates of the broker ----------------------------------------------------------------------------------------


def test_a_client_refuses_another_authority_name_or_an_expired_certificate(broker: TlsBroker) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed certificate|unable to get local issuer"):
        broker.connect(ssl.create_default_context(cadata=Authority("Other").pem))
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        broker.connect(host="broker.example.com")
    logged(broker, "the client does not trust the authority of the broker's certificate")


def test_an_expired_certificate_is_refused_by_clients(tmp_path: Path) -> None:
    broker = TlsBroker(tmp_path)
    broker.authority.issue(has_expired=True).save(broker.key_store)
    with broker, pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
        broker.connect()


def test_a_pkcs12_key_store_with_its_chain(tmp_path: Path) -> None:
    broker = TlsBroker(tmp_path)
    between = Authority("Between", broker.authority)
    store = tmp_path / "broker.p12"
    store.write_bytes(between.issue().pkcs12("s3cret"))
    broker.settings |= {"ssl.keystore.location": str(store), "ssl.keystore.password": "s3cret"}
    broker.settings |= {"ssl.keystore.type": "PKCS12", "ssl.key.password": "s3cret"}
    with broker, broker.connect() as connection:
        assert answers(connection)
    assert "s3cret" not in broker.log_text()


@OURS_ALONE
@pytest.mark.parametrize(
    "settings,reason",
    [
        ({"ssl.keystore.location": "/nowhere/broker.pem"}, "cannot read /nowhere/broker.pem"),
        ({"ssl.keystore.password": "s3cret"}, "must not be set for PEM"),
        ({"ssl.principal.mapping.rules": "RULE:x"}, "cannot read the rule"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "all suites of TLS 1.3 or none"),
        ({"ssl.client.auth": "required"}, "the authorities that clients"),
    ],
)
def test_a_broker_that_cannot_serve_tls_does_not_start(settings: dict[str, str], reason: str, tmp_path: Path) -> None:
    broker = TlsBroker(tmp_path, settings=settings)
    with pytest.raises(ServiceFailed):
        broker.start()
    assert reason in broker.log_text()
    assert "s3cret" not in broker.log_text()


# -- certificates of clients -------------------------------------------------------------------------------------------


def test_a_client_with_an_accepted_certificate_is_served(mutual: TlsBroker) -> None:
    round_trip(mutual.client_settings(app(mutual)), "mutual", b"hello")
    logged(mutual, '"principal": "User:billing"')


def refused(broker: TlsBroker, context: ssl.SSLContext) -> None:
    """With TLS 1.3 a client learns at its first read that its certificate was refused."""
    with pytest.raises((ssl.SSLError, ConnectionError)), broker.connect(context) as connection:
        connection.sendall(frame(MetadataRequest(topics=None), 9))
        if not connection.recv(4):
            raise ConnectionResetError


def test_a_client_without_a_certificate_is_refused(mutual: TlsBroker) -> None:
    refused(mutual, mutual.client_context())
    logged(mutual, "the client has shown no certificate, but ssl.client.auth is required")


@pytest.mark.parametrize("kind", ["unknown", "expired"])
def test_a_client_with_another_certificate_is_refused(mutual: TlsBroker, kind: str) -> None:
    authority = Authority("Other") if kind == "unknown" else mutual.authority
    identity = authority.issue("CN=Billing,OU=Apps,O=Acme", has_expired=kind == "expired")
    refused(mutual, mutual.client_context(identity))
    logged(
        mutual,
        "certificate has expired" if kind == "expired" else "the client's certificate is not accepted (self-signed",
    )


def test_a_certificate_without_a_principal_closes_the_connection(mutual: TlsBroker) -> None:
    refused(mutual, mutual.client_context(app(mutual, "CN=Billing,OU=People,O=Acme")))
    logged(mutual, "no rule of ssl.principal.mapping.rules applies to 'CN=Billing,OU=People,O=Acme'")


def test_requested_certificates_may_be_missing_but_not_wrong(tmp_path: Path) -> None:
    broker = TlsBroker(tmp_path, settings={"ssl.client.auth": "requested"})
    broker.settings["ssl.truststore.location"] = str(broker.trusted)
    with broker:
        for context in (broker.client_context(), broker.client_context(app(broker))):
            with broker.connect(context) as connection:
                assert answers(connection)
        refused(broker, broker.client_context(Authority("Other").issue()))


# -- certificates that change ------------------------------------------------------------------------------------------


def shown_serial(broker: TlsBroker) -> int:
    with broker.connect() as connection:
        found = connection.getpeercert()
        assert found is not None
        return int(str(found["serialNumber"]), 16)


@OURS_ALONE
def test_new_files_are_used_for_new_connections_and_broken_ones_are_not(tmp_path: Path) -> None:
    with TlsBroker(tmp_path) as broker, broker.connect() as old_connection:
        renewed = broker.authority.issue()
        renewed.save(broker.key_store)
        eventually(lambda: shown_serial(broker) == renewed.certificate.serial_number)
        assert answers(old_connection)

        broker.key_store.write_text("broken")
        logged(broker, "cannot use the new certificates")
        assert shown_serial(broker) == renewed.certificate.serial_number

        broker.authority.issue("CN=other,O=Acme").save(broker.key_store)
        logged(broker, "unless ssl.allow.dn.changes is true")
        assert shown_serial(broker) == renewed.certificate.serial_number


def alter(broker: TlsBroker, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def test_a_key_store_can_be_changed_for_one_listener(tmp_path: Path) -> None:
    with TlsBroker(tmp_path) as broker:
        renewed = broker.authority.issue()
        other = renewed.save(tmp_path / "other.pem")
        alter(broker, "listener.name.external.ssl.keystore.location", str(other))
        eventually(lambda: shown_serial(broker) == renewed.certificate.serial_number)
        if KAFKA_JARS is None:
            with pytest.raises(
                KafkaException, match=r"listener EXTERNAL: ssl\.keystore\.location: cannot read /nowhere"
            ):
                alter(broker, "listener.name.external.ssl.keystore.location", "/nowhere")
            with pytest.raises(KafkaException, match=r"ssl\.keystore\.password: must not be set for PEM") as refused:
                alter(broker, "listener.name.external.ssl.keystore.password", "s3cret")
            assert "s3cret" not in str(refused.value) + broker.log_text()
        with pytest.raises(KafkaException, match="for one listener only|only per-listener"):
            alter(broker, "ssl.keystore.location", str(other))
        if KAFKA_JARS is None:  # which does not refuse it
            with pytest.raises(KafkaException, match="cannot be changed while the broker runs"):
                alter(broker, "listener.name.external.ssl.client.auth", "none")
        broker.restart()
        eventually(lambda: shown_serial(broker) == renewed.certificate.serial_number)


@OURS_ALONE
def test_no_secret_of_a_store_is_written_or_shown(tmp_path: Path) -> None:
    """Neither its password nor its key, when they are set at run time, work, and do not work."""
    broker = TlsBroker(tmp_path, settings={"metrics.listener": "http://127.0.0.1:0"})
    store = tmp_path / "broker.p12"
    store.write_bytes(broker.authority.issue().pkcs12("s3cret-of-store"))
    broker.settings |= {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "s3cret-of-store",
    }
    key = broker.authority.issue().key_pem()
    with broker:
        shown_serial(broker)
        with pytest.raises(KafkaException, match="password") as refused:
            alter(broker, "listener.name.external.ssl.keystore.password", "guessed-5481")
        with pytest.raises(KafkaException, match="must be set together") as half:
            alter(broker, "listener.name.external.ssl.keystore.key", key)
        secrets = ("s3cret-of-store", "guessed-5481", key.splitlines()[1])
        assert not any(secret in f"{refused.value} {half.value}" for secret in secrets)
        assert places_with_secrets(broker, secrets, known=[broker.key_store, store]) == []


# -- clients that do something else ------------------------------------------------------------------------------------


@OURS_ALONE
def test_a_client_without_tls_gets_a_helpful_line_in_the_log(broker: TlsBroker) -> None:
    with socket.create_connection(broker.tls_endpoint, timeout=TIMEOUT_S) as plain:
        plain.sendall(frame(ApiVersionsRequest("test", "1"), 3))
        while plain.recv(1000):  # an alert, then the end
            pass
    logged(broker, "the client does not use TLS; change its security.protocol")


@OURS_ALONE
def test_a_client_with_tls_on_a_plain_listener_gets_a_helpful_line_in_the_log(broker: TlsBroker) -> None:
    host, _, port = broker.address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as sock,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        broker.client_context().wrap_socket(sock, server_hostname=host)
    logged(broker, "the client uses TLS, but the listener PLAINTEXT is PLAINTEXT")


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_client_that_has_not_logged_in_gets_no_answers(protocol: str, tmp_path: Path) -> None:
    mapping = f"PLAINTEXT:PLAINTEXT,EXTERNAL:{protocol},CONTROLLER:PLAINTEXT"
    settings = {
        "listener.security.protocol.map": mapping,
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.external.scram-sha-256.sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required;",
    }
    with TlsBroker(tmp_path, settings=settings) as broker:
        if protocol == "SASL_SSL":
            refused(broker, broker.client_context())
        else:
            with socket.create_connection(broker.tls_endpoint, timeout=TIMEOUT_S) as plain:
                plain.sendall(frame(MetadataRequest(topics=None), 9))
                assert plain.recv(1) == b""


@OURS_ALONE
def test_silent_clients_delay_no_others_and_are_disconnected(broker: TlsBroker) -> None:
    silent = [socket.create_connection(broker.tls_endpoint, timeout=TIMEOUT_S) for _ in range(300)]
    for number, sock in enumerate(silent):
        sock.sendall(b"\x16\x03\x01"[: number % 4])
    began = time.monotonic()
    with broker.connect() as connection:
        assert answers(connection)
    assert time.monotonic() - began < 5
    for sock in silent:
        assert sock.recv(1000) == b""
        sock.close()
    logged(broker, "not complete within 10 s")


def test_a_slow_reader_delays_no_others(broker: TlsBroker) -> None:
    round_trip(broker.client_settings(), "slow", b"x" * 900_000, 20)
    with closing(
        Consumer({**broker.client_settings(), "group.id": "slow", "fetch.message.max.bytes": 50 * MIB})
    ) as slow:
        slow.assign([TopicPartition("slow", 0, 0)])
        with broker.connect() as connection:
            assert answers(connection)
        assert slow.poll(TIMEOUT_S) is not None
