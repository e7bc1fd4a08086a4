"""A registry that asks for users, with https: Confluent's clients, ours, curl, and the broker's guarded topics."""

import json
import pickle
import re
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from struct import pack
from typing import Any

import httpx2
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryError
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from typing_extensions import override

from connect.api.data import INT32, struct
from connect.converters.avro.converter import AvroConverter
from core_broker.service.clock import SystemClock
from rest_proxy.settings import ProxySettings
from schema_registry.client.errors import NotAllowed
from schema_registry.client.models import SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from streams.spark.decoding.registry import RegistryDecoder
from streams.spark.decoding.spec import DecoderSpec
from tests.support.admin import create_topic
from tests.support.authority import AuthorityFolder
from tests.support.broker import BrokerProcess
from tests.support.protobuf_messages import message_classes
from tests.support.registry import AVRO
from tests.support.registry_access import ADMIN, ALICE, BOB, GuardedRegistry, rule
from tests.support.registry_clients import KINDS, confluent, context
from tests.support.service import run_module

pytestmark = pytest.mark.timeout(300)

SERIALIZED: dict[str, tuple[Any, Any]] = {
    "avro": (AVRO, {"n": 1}),
    "json": ('{"title":"Order","type":"object","properties":{"n":{"type":"integer"}}}', {"n": 1}),
    "protobuf": (None, None),
}
SHOP = {"shop.proto": 'syntax = "proto3"; package shop; message Order { int32 n = 1; }'}


class SecureRegistry(GuardedRegistry):
    """A registry on https that takes passwords, tokens and certificates."""

    ready = re.compile(rb"registry ready: listeners=(https://[\w.\[\]:-]+:\d+)")

    def __init__(self, directory: Path) -> None:
        self.authority = AuthorityFolder(directory)
        self._key = RSAKey.generate_key(2048, {"kid": "one"})
        keys = directory / "keys.json"
        keys.write_text(json.dumps(KeySet([self._key]).as_dict(private=False)))
        certificate = str(self.authority.issue("127.0.0.1"))
        settings = {
            "authentication.method": "BASIC,BEARER,CERTIFICATE",
            "ssl.certificate.location": certificate,
            "ssl.key.location": certificate,
            "ssl.ca.location": str(self.authority.trust_store),
            "ssl.client.authentication": "REQUESTED",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        }
        super().__init__(directory, settings=settings)

    @override
    def _command(self) -> list[str]:
        return run_module("schema_registry", {"listeners": f"https://127.0.0.1:{self._port}", **self.settings})

    def token(self, user: str) -> str:
        """A token that a provider of identities has signed."""
        now = SystemClock().now_ms() // 1000
        return jwt.encode({"alg": "RS256", "kid": "one"}, {"sub": user, "iat": now, "exp": now + 600}, self._key)

    def login(self, method: str, user: tuple[str, str]) -> dict[str, str]:
        """How a client logs in, in the words of Confluent's clients."""
        name, password = user
        trust = {"ssl.ca.location": str(self.authority.trust_store)}
        match method:
            case "basic":
                return {**trust, "basic.auth.user.info": f"{name}:{password}"}
            case "bearer":
                cloud = {"bearer.auth.logical.cluster": "lsrc-1", "bearer.auth.identity.pool.id": "pool-1"}
                source = {"bearer.auth.credentials.source": "STATIC_TOKEN"}
                return {**trust, **source, **cloud, "bearer.auth.token": self.token(name)}
            case _:
                store = str(self.authority.issue(name))
                return {**trust, "ssl.certificate.location": store, "ssl.key.location": store}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureRegistry]:
    """Alice may do everything to subjects that begin with `alice-`, bob may read them, the broker reads everything."""
    with SecureRegistry(tmp_path_factory.mktemp("registry")) as process:
        names = {"resource": "alice-", "pattern_type": "PREFIXED"}
        rules = [
            rule("ALL", **names),
            rule("READ", who="User:bob", **names),
            rule("READ", "*", who="User:broker"),
        ]
        verify = ssl.create_default_context(cafile=process.authority.trust_store)
        with httpx2.Client(auth=ADMIN, verify=verify) as admin:
            assert admin.post(f"{process.url}/security/acls", json=rules).status_code == 201
        yield process
        for secret in (ALICE[1], BOB[1], ADMIN[1]):
            assert secret not in process.log_text()


@pytest.mark.parametrize("colour", KINDS)
@pytest.mark.parametrize("method", ["basic", "bearer", "certificate"])
@pytest.mark.parametrize("kind", SERIALIZED)
def test_confluent_s_serializers_work_with_users(registry: SecureRegistry, method: str, kind: str, colour: str) -> None:
    topic = f"alice-{method}-{kind}"
    schema, value = SERIALIZED[kind]
    with (
        confluent(registry.url, colour, settings=registry.login(method, ALICE)) as writing,
        confluent(registry.url, colour, settings=registry.login(method, BOB)) as reading,
    ):
        if kind == "protobuf":
            order = message_classes(SHOP)["shop.Order"]
            data = writing.protobuf_serializer(order)(order(n=1), context(topic))
            assert reading.protobuf_deserializer(order)(data, context(topic)).n == 1
            return
        data = getattr(writing, f"{kind}_serializer")(schema)(value, context(topic))
        assert getattr(reading, f"{kind}_deserializer")()(data, context(topic)) == value


@pytest.mark.parametrize("method", ["basic", "bearer", "certificate"])
def test_confluent_s_client_is_told_what_it_may_not_do(registry: SecureRegistry, method: str) -> None:
    with confluent(registry.url, settings=registry.login(method, BOB)) as theirs:
        with pytest.raises(SchemaRegistryError) as refusal:
            theirs.register_schema("alice-new", Schema('"int"', "AVRO"))
        assert (refusal.value.http_status_code, refusal.value.error_code) == (403, 40301)
        assert theirs.get_subjects() == [name for name in theirs.get_subjects() if name.startswith("alice-")]


@pytest.mark.parametrize("method", ["basic", "bearer", "certificate"])
def test_our_client_works_with_users(registry: SecureRegistry, method: str) -> None:
    def client(user: tuple[str, str]) -> RegistryClient:
        return RegistryClient(RegistryClientSettings.parse({"url": registry.url, **registry.login(method, user)}))

    subject = f"alice-ours-{method}"
    with client(ALICE) as alice, client(BOB) as bob, client(("carol", "x")) as carol:
        found = alice.register(subject, SchemaDefinition(text=AVRO))
        assert found.id is not None
        assert bob.by_id(found.id) == alice.by_id(found.id)
        with pytest.raises(NotAllowed):
            carol.register(subject, SchemaDefinition(text=AVRO))


@pytest.mark.parametrize("method", ["basic", "bearer", "certificate"])
def test_connect_s_converters_work_with_users(registry: SecureRegistry, method: str) -> None:
    given = registry.login(method, ALICE)
    options = {key if key.startswith("b") else f"schema.registry.{key}": value for key, value in given.items()}
    converter = AvroConverter({"schema.registry.url": registry.url, **options}, is_key=False)
    schema = struct({"n": INT32}, name="shop.Order")
    topic = f"alice-connect-{method}"
    assert converter.to_connect(topic, converter.from_connect(topic, schema, {"n": 1}))[1] == {"n": 1}
    converter.close()


@pytest.mark.parametrize("method", ["basic", "bearer", "certificate"])
def test_spark_s_executors_and_the_proxy_work_with_users(registry: SecureRegistry, method: str) -> None:
    properties = {
        f"schema.registry.{key}": value for key, value in {"url": registry.url, **registry.login(method, ALICE)}.items()
    }
    with RegistryClient(ProxySettings.parse(properties).registry()) as client:
        found = client.register(f"alice-spark-{method}-value", SchemaDefinition(text=AVRO))
    assert found.id is not None
    spec = pickle.loads(pickle.dumps(DecoderSpec.of("avro", properties)))  # as it comes to an executor
    assert ALICE[1] not in repr(spec)
    decoder = RegistryDecoder(spec)
    decoded = decoder.decode(pa.array([framing(found.id) + b"\x02"]), f"alice-spark-{method}")
    assert (decoded.bad, len(decoded.parts)) == ([], 1)
    decoder._client.close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the command curl is not installed")
@pytest.mark.parametrize("method", ["basic", "bearer", "certificate", "none"])
def test_curl_works_with_users(registry: SecureRegistry, method: str, tmp_path: Path) -> None:
    config = tmp_path / "curl"
    lines = {
        "basic": f'user = "{":".join(ALICE)}"',
        "bearer": f'header = "Authorization: Bearer {registry.token("alice")}"',
        "certificate": f'cert = "{registry.authority.issue("alice")}"',
        "none": "",
    }
    config.write_text(lines[method])
    command = ["curl", "-s", "-K", str(config), "--cacert", str(registry.authority.trust_store)]
    command += ["-w", "%{http_code}", "-o", "/dev/null", f"{registry.url}/subjects"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert shown.stdout == ("401" if method == "none" else "200")


def framing(schema_id: int) -> bytes:
    """What serializers write before the data."""
    return pack(">bI", 0, schema_id)


def fate(broker: BrokerProcess, topic: str, value: bytes, *, patience_ms: int = 30_000) -> int:
    """Produce a value; the error code that it ends with, or 0."""
    fates: list[int] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        fates.append(0 if error is None else error.code())

    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": patience_ms})
    producer.produce(topic, value, on_delivery=delivered)
    assert producer.flush(60) == 0
    return fates[0]


def _broker_login(registry: SecureRegistry, method: str) -> Mapping[str, str]:
    trust = {"confluent.ssl.truststore.location": str(registry.authority.trust_store)}
    if method == "bearer":
        return {**trust, "confluent.bearer.auth.token": registry.token("broker")}
    if method == "certificate":
        return {**trust, "confluent.ssl.keystore.location": str(registry.authority.issue("broker"))}
    if method == "wrong user":
        return {**trust, "confluent.bearer.auth.token": registry.token("carol")}
    return {
        **trust,
        "confluent.basic.auth.credentials.source": "USER_INFO",
        "confluent.basic.auth.user.info": ":".join(ADMIN),
    }


@pytest.fixture
def guarding(registry: SecureRegistry, tmp_path: Path) -> Iterator[Callable[[str], BrokerProcess]]:
    """Start a broker that logs in at the registry."""
    started: list[BrokerProcess] = []

    def start(method: str) -> BrokerProcess:
        settings = {"confluent.schema.registry.url": registry.url, **_broker_login(registry, method)}
        started.append(BrokerProcess(tmp_path, settings=settings).start())
        return started[-1]

    yield start
    for broker in started:
        broker.stop()


@pytest.mark.parametrize("method", ["basic", "bearer", "certificate"])
def test_guarded_topics_work_with_a_user(
    registry: SecureRegistry, guarding: Callable[[str], BrokerProcess], method: str
) -> None:
    broker, topic = guarding(method), f"alice-guarded-{method}"
    create_topic(broker, topic, configs={"confluent.value.schema.validation": "true"})
    with confluent(registry.url, settings=registry.login("basic", ALICE)) as theirs:
        known = theirs.register_schema(f"{topic}-value", Schema(AVRO, "AVRO"))
    assert fate(broker, topic, framing(known) + b"x") == 0
    assert fate(broker, topic, b"plain") == KafkaError.INVALID_RECORD


def test_guarded_topics_of_a_broker_without_the_right_say_why(
    registry: SecureRegistry, guarding: Callable[[str], BrokerProcess]
) -> None:
    broker = guarding("wrong user")
    create_topic(broker, "alice-refused", configs={"confluent.value.schema.validation": "true"})
    assert fate(broker, "alice-refused", framing(1) + b"x", patience_ms=3000) == KafkaError._MSG_TIMED_OUT
    assert "HTTP 403: the broker needs a user of the registry" in broker.log_text()
