"""Users, rules, quotas and tokens made by Kafka's own command-line tools, which log in with `--command-config`.

They need Java and the jar of the tools with all it needs, in one folder: `make test-java` fetches them and runs this.
With KAFKA_JARS the tools and clients meet a node of Apache Kafka.
"""

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.support.admin import create_topic, eventually
from tests.support.clients.confluent import consumer_config, poll_records
from tests.support.clients.model import TIMEOUT_S
from tests.support.every_login import AUDIENCE, ISSUER, EveryLogin
from tests.support.java_tools import needs_tools, run_java
from tests.support.sasl_world import signed_token, signing_key

pytestmark = needs_tools

CONFIGS: Final = "kafka.admin.ConfigCommand"
ACLS: Final = "org.apache.kafka.tools.AclCommand"
TOKENS: Final = "org.apache.kafka.tools.DelegationTokenCommand"
TOPICS: Final = "org.apache.kafka.tools.TopicCommand"


class Tools:
    """Kafka's tools as one user runs them."""

    def __init__(self, node: EveryLogin, file: Path, properties: str) -> None:
        self._where = ("--bootstrap-server", node.addresses["LOGIN"], "--command-config", str(file))
        file.write_text(properties)

    def run(self, tool: str, *arguments: str) -> str:
        """What a tool writes; fails when it does."""
        return run_java(tool, *self._where, *arguments)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EveryLogin]:
    with EveryLogin(tmp_path_factory.mktemp("secured")) as node:
        yield node


@pytest.fixture
def admin(secured: EveryLogin, tmp_path: Path) -> Tools:
    """An administrator, who logs in by a password."""
    return Tools(secured, tmp_path / "admin.properties", secured.client_properties())


def add_user(admin: Tools, name: str) -> None:
    password = f"SCRAM-SHA-512=[iterations=4096,password={name}-secret]"
    said = admin.run(CONFIGS, "--alter", "--add-config", password, "--entity-type", "users", "--entity-name", name)
    assert f"Completed updating config for user {name}." in said


def login_of(node: EveryLogin, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.addresses["LOGIN"],
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(node.stores.trust_store),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
        "log_level": 0,
    }


def can_log_in(node: EveryLogin, user: str) -> bool:
    refusals: list[KafkaError] = []
    settings: dict[str, Any] = {**login_of(node, user), "error_cb": refusals.append}
    client = AdminClient(settings)
    try:
        client.list_topics(timeout=5)
    except KafkaException:
        client.poll(1)
        assert any(refusal.code() == KafkaError._AUTHENTICATION for refusal in refusals)
        return False
    return True


def sent(producer: Producer, topic: str) -> int:
    """Send a record: the code of its error, 0 for none."""
    codes: list[int] = []
    producer.produce(topic, b"value", on_delivery=lambda error, _: codes.append(error.code() if error else 0))
    assert producer.flush(TIMEOUT_S) == 0
    return codes[0]


def test_a_user_of_kafka_configs_logs_in_until_it_is_deleted(secured: EveryLogin, admin: Tools, name: str) -> None:
    add_user(admin, name)
    eventually(lambda: can_log_in(secured, name))
    user = ("--entity-type", "users", "--entity-name", name)
    assert "SCRAM-SHA-512=iterations=4096" in admin.run(CONFIGS, "--describe", *user)
    admin.run(CONFIGS, "--alter", "--delete-config", "SCRAM-SHA-512", *user)
    eventually(lambda: not can_log_in(secured, name))
    with pytest.raises(AssertionError, match="ResourceNotFound|does not exist|nonexistent|delete a user credential"):
        admin.run(CONFIGS, "--alter", "--delete-config", "SCRAM-SHA-512", *user)


def test_rules_of_kafka_acls_open_and_close_a_topic(secured: EveryLogin, admin: Tools, name: str) -> None:
    add_user(admin, name)
    create_topic(secured, name)
    producer = Producer({**login_of(secured, name), "retries": 0})
    eventually(lambda: sent(producer, name) == KafkaError.TOPIC_AUTHORIZATION_FAILED)
    rules = ("--allow-principal", f"User:{name}", "--topic", name)
    admin.run(ACLS, "--add", "--producer", *rules)
    admin.run(ACLS, "--add", "--consumer", "--group", name, *rules)
    eventually(lambda: sent(producer, name) == 0)
    settings = consumer_config(secured.addresses["LOGIN"], name, **login_of(secured, name))
    consumer = Consumer(settings)
    try:
        consumer.subscribe([name])
        assert poll_records(consumer, 1)[0].value == b"value"
    finally:
        consumer.close()
    listed = admin.run(ACLS, "--list", "--topic", name)
    for operation in ("WRITE", "READ", "DESCRIBE", "CREATE"):
        rule = f"principal=User:{name}, host=*, operation={operation}, permissionType=ALLOW"
        assert rule in listed
    admin.run(ACLS, "--remove", "--force", "--producer", *rules)
    eventually(lambda: sent(producer, name) == KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert "operation=WRITE" not in admin.run(ACLS, "--list", "--topic", name)


def test_a_denial_of_kafka_acls_wins_over_a_prefix(secured: EveryLogin, admin: Tools, name: str) -> None:
    add_user(admin, name)
    create_topic(secured, name)
    prefix = ("--topic", name[:-1], "--resource-pattern-type", "prefixed")
    admin.run(ACLS, "--add", "--allow-principal", f"User:{name}", "--operation", "All", *prefix)
    producer = Producer({**login_of(secured, name), "retries": 0})
    eventually(lambda: sent(producer, name) == 0)
    denial = ("--deny-principal", f"User:{name}", "--deny-host", "127.0.0.1", "--operation", "Write")
    admin.run(ACLS, "--add", *denial, "--topic", name)
    eventually(lambda: sent(producer, name) == KafkaError.TOPIC_AUTHORIZATION_FAILED)
    matched = admin.run(ACLS, "--list", "--topic", name, "--resource-pattern-type", "match")
    assert "permissionType=DENY" in matched
    assert "permissionType=ALLOW" in matched


def test_a_quota_of_kafka_configs_throttles_its_user(secured: EveryLogin, admin: Tools, name: str) -> None:
    add_user(admin, name)
    create_topic(secured, name)
    user = ("--entity-type", "users", "--entity-name", name)
    admin.run(CONFIGS, "--alter", "--add-config", "producer_byte_rate=10000,request_percentage=200", *user)
    assert "producer_byte_rate=10000.0" in admin.run(CONFIGS, "--describe", *user)
    admin.run(ACLS, "--add", "--producer", "--allow-principal", f"User:{name}", "--topic", name)
    throttled: list[float] = []
    producer = Producer({**login_of(secured, name), "throttle_cb": lambda event: throttled.append(event.throttle_time)})

    def is_throttled() -> bool:
        producer.produce(name, b"x" * 60_000)
        producer.poll(0.1)
        return any(seconds > 0 for seconds in throttled)

    eventually(is_throttled)
    producer.purge()
    admin.run(CONFIGS, "--alter", "--delete-config", "producer_byte_rate,request_percentage", *user)
    assert "producer_byte_rate" not in admin.run(CONFIGS, "--describe", *user)


@pytest.mark.parametrize(
    ("entity", "quota"),
    [
        (("--entity-type", "users", "--entity-default"), "consumer_byte_rate=500000"),
        (("--entity-type", "clients", "--entity-name", "reports"), "consumer_byte_rate=500000"),
        (("--entity-type", "ips", "--entity-name", "192.0.2.1"), "connection_creation_rate=7"),
    ],
)
def test_quotas_of_other_entities_are_described(admin: Tools, entity: tuple[str, ...], quota: str) -> None:
    key, _, value = quota.partition("=")
    admin.run(CONFIGS, "--alter", "--add-config", quota, *entity)
    eventually(partial(admin.run, CONFIGS, "--describe", *entity), lambda said: f"{key}={float(value)}" in said)
    admin.run(CONFIGS, "--alter", "--delete-config", key, *entity)
    eventually(partial(admin.run, CONFIGS, "--describe", *entity), lambda said: key not in said)


def test_a_token_of_kafka_delegation_tokens_lets_in_until_it_expires(
    secured: EveryLogin, admin: Tools, tmp_path: Path
) -> None:
    alice = Tools(
        secured, tmp_path / "alice", secured.client_properties("LOGIN", user="alice", password="alice-secret")
    )
    said = alice.run(TOKENS, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:admin")
    (row,) = re.findall(r"^([\w-]{22})\s+(\S{88})\s+User:alice", said, re.MULTILINE)
    token_id, hmac = row
    options = f'username="{token_id}" password="{hmac}" tokenauth="true"'
    bearer = Tools(secured, tmp_path / "token", secured.login_properties("LOGIN", "SCRAM-SHA-256", options))
    # Without an owner the tool of Kafka 4.3 asks for the tokens of nobody, and gets none from either kind of broker.
    listing = partial(alice.run, TOKENS, "--describe", "--owner-principal", "User:alice")
    eventually(listing, lambda listed: token_id in listed)
    admin.run(ACLS, "--add", "--allow-principal", "User:alice", "--operation", "Describe", "--topic", "of-alice")
    create_topic(secured, "of-alice")
    assert "of-alice" in bearer.run(TOPICS, "--list")
    with pytest.raises(AssertionError, match="Delegation Token requests are not allowed"):
        bearer.run(TOKENS, "--describe")
    assert "Completed renew operation" in admin.run(TOKENS, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed expire operation" in alice.run(TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    with pytest.raises(AssertionError, match="Authentication failed|invalid_token|SaslAuthenticationException"):
        bearer.run(TOPICS, "--list")
    assert token_id not in listing()


def test_a_tool_says_clearly_why_it_is_not_let_in(secured: EveryLogin, tmp_path: Path) -> None:
    wrong = Tools(secured, tmp_path / "wrong", secured.client_properties(password="guessed"))
    with pytest.raises(AssertionError, match="Authentication failed: Invalid username or password"):
        wrong.run(TOPICS, "--list")
    nobody = Tools(secured, tmp_path / "bob", secured.client_properties(user="bob", password="bob-secret"))
    with pytest.raises(AssertionError, match="ClusterAuthorizationException"):
        nobody.run(ACLS, "--list")


def test_a_tool_reads_a_signed_token_from_a_file(
    secured: EveryLogin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Kafka's own handler of the login."""
    now = int(time.time())  # noqa: TID251 - the clock of the identity provider
    claims = {"sub": "admin", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 600}
    file = tmp_path / "token"
    file.write_text(signed_token(claims, signing_key("key1")))
    properties = secured.login_properties("LOGIN", "OAUTHBEARER", "")
    properties += f"sasl.oauthbearer.token.endpoint.url={file.as_uri()}\n"
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    properties += f"sasl.login.callback.handler.class={handler}\n"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={file.as_uri()}")
    create_topic(secured, "of-the-token")
    assert "of-the-token" in Tools(secured, tmp_path / "properties", properties).run(TOPICS, "--list")
    file.write_text(signed_token({**claims, "aud": "another"}, signing_key("key1")))
    with pytest.raises(AssertionError, match="Authentication failed|invalid_token|SaslAuthenticationException"):
        Tools(secured, tmp_path / "properties", properties).run(TOPICS, "--list")
