"""A broker whose clients log in, and logins of the usual clients."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import KafkaError, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError as PureKafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider as PureTokenProvider
from typing_extensions import override

from tests.support.either_node import EitherNode

JAAS = "org.apache.kafka.common.security"
PREFIX = "listener.name.external"
PLAIN_USERS = f'{JAAS}.plain.PlainLoginModule required user_admin="admin-secret" user_alice="a \\"quoted\\" secret";'
ALICE_PASSWORD = 'a "quoted" secret'
TOPIC = "of-users"

Token = Callable[[], tuple[str, float]]
"""A token and when it expires, in seconds."""


class SaslBroker(EitherNode):
    """A broker with a listener for clients that log in, and one for everything else."""

    def __init__(self, directory: Path, *, settings: Mapping[str, str], allowed_urls: Sequence[str] = ()) -> None:
        """`allowed_urls` are those that Apache Kafka may read keys from."""
        mechanisms = settings["sasl.enabled.mechanisms"].lower().split(",")
        super().__init__(
            directory,
            listeners={"EXTERNAL": "SASL_PLAINTEXT"},
            settings={"num.partitions": "1", **_logins(mechanisms), **settings},
            java_options=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(allowed_urls)}"],
        )
        self.external = self.addresses["EXTERNAL"]
        """Where clients log in."""


def _logins(mechanisms: Sequence[str]) -> dict[str, str]:
    """What Apache Kafka needs for each mechanism, and we for PLAIN."""
    known = {
        "plain": {"sasl.jaas.config": PLAIN_USERS},
        "scram-sha-256": {"sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required;"},
        "scram-sha-512": {"sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required;"},
        "oauthbearer": {
            "sasl.jaas.config": f"{JAAS}.oauthbearer.OAuthBearerLoginModule required;",
            "sasl.server.callback.handler.class": f"{JAAS}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        },
    }
    return {f"{PREFIX}.{name}.{key}": value for name in mechanisms for key, value in known[name].items()}


class Refused(Exception):
    """A client could not log in."""


def confluent(bootstrap: str, mechanism: str, user: str, password: str) -> None:
    """Log in and produce with confluent-kafka."""
    settings = {"sasl.username": user, "sasl.password": password}
    _confluent({"bootstrap.servers": bootstrap, "sasl.mechanisms": mechanism, **settings})


def confluent_token(bootstrap: str, token: Token) -> None:
    """The same with a token."""
    oauth: dict[str, Any] = {"oauth_cb": lambda _: token()}
    _confluent({"bootstrap.servers": bootstrap, "sasl.mechanisms": "OAUTHBEARER", **oauth})


def _confluent(settings: dict[str, Any]) -> None:
    failures: list[str] = []
    refusals: list[int] = []

    def on_error(error: KafkaError) -> None:
        failures.append(error.str())
        if error.code() == KafkaError._AUTHENTICATION:
            refusals.append(error.code())

    producer = Producer(
        {"security.protocol": "SASL_PLAINTEXT", "message.timeout.ms": 8000, "error_cb": on_error, **settings}
    )
    delivered: list[str] = []
    producer.produce(TOPIC, b"confluent", on_delivery=lambda error, _: delivered.append(error.str() if error else ""))
    for _ in range(90):
        producer.poll(0.1)
        if delivered or refusals:
            break
    producer.purge()
    producer.flush(5)
    if delivered[:1] != [""]:
        raise Refused("; ".join([*failures, *delivered]))


def pure(bootstrap: str, mechanism: str, user: str, password: str) -> None:
    """Log in and produce with kafka-python."""
    _pure(bootstrap, sasl_mechanism=mechanism, sasl_plain_username=user, sasl_plain_password=password)


class _PureToken(PureTokenProvider):  # type: ignore[misc]  # untyped
    def __init__(self, token: Token) -> None:
        self._token = token

    @override
    def token(self) -> str:
        return self._token()[0]


def pure_token(bootstrap: str, token: Token) -> None:
    """The same with a token."""
    _pure(bootstrap, sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=_PureToken(token))


def _pure(bootstrap: str, **settings: Any) -> None:
    producer = None
    try:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            security_protocol="SASL_PLAINTEXT",
            max_block_ms=3000,
            bootstrap_timeout_ms=3000,
            **settings,
        )
        producer.send(TOPIC, b"pure").get(timeout=3)
    except PureKafkaError as error:
        raise Refused(str(error)) from error
    finally:
        if producer is not None:
            producer.close(timeout=0)


async def aio(bootstrap: str, mechanism: str, user: str, password: str) -> None:
    """Log in and produce with aiokafka."""
    await _aio(bootstrap, sasl_mechanism=mechanism, sasl_plain_username=user, sasl_plain_password=password)


class _AioToken(AbstractTokenProvider):  # type: ignore[misc]  # untyped
    def __init__(self, token: Token) -> None:
        self._token = token

    @override
    async def token(self) -> str:
        return self._token()[0]


async def aio_token(bootstrap: str, token: Token) -> None:
    """The same with a token."""
    await _aio(bootstrap, sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=_AioToken(token))


async def _aio(bootstrap: str, **settings: Any) -> None:
    from aiokafka.errors import KafkaError as AioKafkaError

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, security_protocol="SASL_PLAINTEXT", **settings)
    try:
        await producer.start()
        await producer.send_and_wait(TOPIC, b"aio")
    except AioKafkaError as error:
        raise Refused(str(error)) from error
    finally:
        await producer.stop()


def kcat(bootstrap: str, mechanism: str, user: str, password: str) -> list[str]:
    """Log in and list the topics with kcat."""
    command = shutil.which("kcat")
    assert command is not None
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": mechanism, "sasl.username": user}
    words = [word for key, value in {**options, "sasl.password": password}.items() for word in ("-X", f"{key}={value}")]
    found = subprocess.run(
        [command, "-b", bootstrap, "-L", "-J", "-m", "5", *words], capture_output=True, timeout=30, check=False
    )
    if found.returncode:
        raise Refused(found.stderr.decode())
    return [topic["topic"] for topic in json.loads(found.stdout)["topics"]]
