"""The tools on a cluster with TLS, users, rules and quotas, as an administrator and others type them."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.admin import eventually
from tests.support.command import Caudal
from tests.support.kafka import KAFKA_JARS
from tests.support.secret_search import places_with_secrets
from tests.support.secured import (
    ADMIN,
    ADMIN_PASSWORD,
    Certificates,
    Secured,
    SecuredBroker,
    SecuredKafka,
    client_properties,
    write_properties,
)

pytestmark = pytest.mark.timeout(300)


class SecuredCluster:
    """A cluster, and client files for its users."""

    def __init__(self, folder: Path, broker: Secured, certificates: Certificates) -> None:
        self.folder = folder
        self.broker = broker
        self.certificates = certificates

    @property
    def bootstrap(self) -> str:
        return self.broker.address

    def config_of(self, user: str, password: str, mechanism: str = "SCRAM-SHA-512", **more: str) -> str:
        """The path of a client file; `more` has underscores for dots."""
        properties = client_properties(self.certificates, user, password, mechanism)
        properties |= {key.replace("_", "."): value for key, value in more.items()}
        return str(write_properties(self.folder / f"{user}-{mechanism}-{uuid.uuid4()}", properties))


@pytest.fixture(scope="module", params=["caudal", "kafka"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    if request.param == "kafka" and KAFKA_JARS is None:
        pytest.skip("KAFKA_JARS names no folder with Apache Kafka")
    folder = tmp_path_factory.mktemp("secured")
    certificates = Certificates(folder)
    kind = SecuredKafka if request.param == "kafka" else SecuredBroker
    with kind(folder / "broker", certificates) as broker:
        yield SecuredCluster(folder, broker, certificates)


@pytest.fixture
def caudal(secured: SecuredCluster, monkeypatch: pytest.MonkeyPatch) -> Caudal:
    """The command, as the administrator."""
    admin = secured.config_of(ADMIN, "admin-secret", "PLAIN")
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", secured.bootstrap)
    monkeypatch.setenv("CAUDAL_CLIENT_CONFIG", admin)
    return Caudal(monkeypatch)


@pytest.fixture
def alice(caudal: Caudal, secured: SecuredCluster, name: str) -> Iterator[tuple[str, str]]:
    """A user of this test's own, and the file to log in with."""
    user = f"alice-{name}"
    caudal("user", "create", user, "--password-file", "-", stdin="wonderland\n")
    file = secured.config_of(user, "wonderland")
    eventually(lambda: _logs_in(caudal, file), bool)
    yield user, file
    caudal("acl", "remove", user, "--yes")
    caudal("user", "delete", user, "--yes")


def _logs_in(caudal: Caudal, file: str) -> bool:
    try:
        caudal("topic", "list", "--client-config", file)
    except AssertionError:
        return False
    return True


def test_users_are_created_listed_changed_and_deleted(caudal: Caudal, secured: SecuredCluster, name: str) -> None:
    assert "created" in caudal("user", "create", name, "--iterations", "8192", stdin="first\n").stderr
    users = {item["user"]: item["mechanisms"] for item in caudal.json("user", "list")}
    assert users[name] == {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 8192}
    assert name in caudal("user", "list").stdout
    assert f"caudal user passwd {name}" in caudal("user", "create", name, stdin="second\n", code=1).stderr
    said = caudal("user", "passwd", name, "--mechanism", "SCRAM-SHA-256", stdin="second\n").stderr
    assert "the old password still works with SCRAM-SHA-512" in said
    eventually(lambda: _logs_in(caudal, secured.config_of(name, "second", "SCRAM-SHA-256")), bool)
    assert _logs_in(caudal, secured.config_of(name, "first", "SCRAM-SHA-512"))
    assert "would delete" in caudal("user", "delete", name, "--dry-run").stderr
    caudal("user", "delete", name, stdin="n\n", code=1)
    assert "deleted" in caudal("user", "delete", name, stdin="y\n").stderr
    assert name not in [item["user"] for item in caudal.json("user", "list")]
    assert "there is no user" in caudal("user", "passwd", name, stdin="x\n", code=1).stderr


def test_a_user_may_do_what_a_rule_allows_and_is_told_which_right_is_missing(
    caudal: Caudal, alice: tuple[str, str], name: str
) -> None:
    user, file = alice
    caudal("topic", "create", name)
    refused = caudal("topic", "produce", name, "hello", "--client-config", file, code=1).stderr
    assert f"User:{user} is not allowed to write topic {name}" in refused
    assert f"caudal acl allow User:{user} write --topic {name}" in refused
    assert "Traceback" not in refused
    assert "may write topic" in caudal("acl", "allow", user, "write", "--topic", name).stderr
    eventually(lambda: caudal.json("acl", "check", user, "write", "--topic", name)[0]["allowed"], bool)
    assert "1 record" in caudal("topic", "produce", name, "hello", "--client-config", file).stderr
    refused = caudal("topic", "consume", name, "--client-config", file, code=1).stderr
    assert f"caudal acl allow User:{user} read --topic {name}" in refused
    caudal("acl", "allow", user, "--consumer", "--topic", name, "--group", name)
    read = caudal("topic", "consume", name, "--group", name, "--client-config", file)
    assert "hello" in read.stdout
    refused = caudal("user", "list", "--client-config", file, code=1).stderr
    assert f"caudal acl allow User:{user} describe --cluster" in refused
    refused = caudal("quota", "set", "--user", user, "--producer-rate", "1MB", "--client-config", file, code=1).stderr
    assert f"caudal acl allow User:{user} alter-configs --cluster" in refused
    refused = caudal("topic", "delete", name, "--yes", "--client-config", file, code=1).stderr
    assert f"caudal acl allow User:{user} delete --topic {name}" in refused
    caudal("topic", "delete", name, "--yes")


def test_rules_are_listed_checked_and_removed(caudal: Caudal, alice: tuple[str, str], name: str) -> None:
    user, _ = alice
    assert "nothing was changed" in caudal("acl", "allow", user, "read", "--topic", name, "--dry-run").stderr
    assert caudal.json("acl", "list", user) == []
    caudal("acl", "allow", user, "read,write", "--topic", name[:6], "--prefixed")
    caudal("acl", "deny", user, "write", "--topic", name, "--yes")
    listed = eventually(lambda: caudal.json("acl", "list", "--topic", name), lambda found: len(found) == 3)
    assert {(item["pattern_type"], item["operation"], item["permission"]) for item in listed} == {
        ("PREFIXED", "READ", "ALLOW"),
        ("PREFIXED", "WRITE", "ALLOW"),
        ("LITERAL", "WRITE", "DENY"),
    }
    assert f"topics {name[:6]}*" in caudal("acl", "list", user).stdout
    allowed = caudal("acl", "check", user, "read", "--topic", name).stdout
    assert f"User:{user} may read topic {name}; a rule allows it" in allowed
    denied = caudal("acl", "check", user, "write", "--topic", name, code=1).stdout
    assert f"a rule denies it: User:{user} may not write topic {name}" in denied
    assert "nothing was removed" in caudal("acl", "remove", user, "--permission", "deny", "--dry-run").stderr
    assert "1 rule removed" in caudal("acl", "remove", user, "--permission", "deny", "--yes").stderr
    assert "2 rules removed" in caudal("acl", "remove", user, "--yes").stderr
    assert "no such rules" in caudal("acl", "remove", user, "--yes").stderr


def test_every_kind_of_rule_can_be_made(caudal: Caudal, alice: tuple[str, str]) -> None:
    user, _ = alice
    caudal("acl", "allow", user, "--producer", "--topic", "orders", "--transactional-id", "shop")
    caudal("acl", "allow", user, "create-tokens", "--token-owner", "User:bob", "--host", "10.0.0.7")
    caudal("acl", "allow", user, "describe", "--delegation-token", "abc", "--cluster")
    caudal("acl", "allow", user, "two-phase-commit", "--transactional-id", "*")
    found = {(item["resource_type"], item["operation"]) for item in caudal.json("acl", "list", user)}
    assert ("USER", "CREATE_TOKENS") in found
    assert ("DELEGATION_TOKEN", "DESCRIBE") in found
    assert ("CLUSTER", "DESCRIBE") in found
    assert ("TRANSACTIONAL_ID", "TWO_PHASE_COMMIT") in found
    assert {("TOPIC", "WRITE"), ("TOPIC", "CREATE"), ("TRANSACTIONAL_ID", "WRITE")} <= found


def test_quotas_are_set_listed_and_removed(caudal: Caudal, name: str) -> None:
    caudal("quota", "set", "--user", name, "--producer-rate", "10MB/s", "--consumer-rate", "1MiB/s")
    caudal("quota", "set", "--user", name, "--any-client-id", "--request-percentage", "50")
    assert "nothing was changed" in caudal("quota", "set", "--user", name, "--producer-rate", "1", "--dry-run").stderr
    listed = eventually(lambda: caudal.json("quota", "list", "--user", name), lambda found: len(found) == 2)
    assert listed == [
        {"entity": {"user": name}, "limits": {"consumer_byte_rate": 1048576.0, "producer_byte_rate": 10000000.0}},
        {"entity": {"user": name, "client-id": None}, "limits": {"request_percentage": 50.0}},
    ]
    assert "producer rate 10 MB/s" in caudal("quota", "list").stdout
    caudal("quota", "set", "--any-ip", "--connection-rate", "1000")
    eventually(lambda: caudal.json("quota", "list", "--any-ip"), bool)
    assert "would remove" in caudal("quota", "remove", "--any-ip", "--dry-run").stderr
    caudal("quota", "remove", "--any-ip", "--yes")
    caudal("quota", "remove", "--user", name, "--producer-rate", "--yes")
    eventually(
        lambda: caudal.json("quota", "list", "--user", name),
        lambda found: found[0]["limits"] == {"consumer_byte_rate": 1048576.0},
    )
    caudal("quota", "remove", "--user", name, "--yes")
    caudal("quota", "remove", "--user", name, "--any-client-id", "--yes")
    eventually(lambda: caudal.json("quota", "list", "--user", name), lambda found: not found)
    wrong = caudal("quota", "set", "--ip", "nowhere.invalid", "--connection-rate", "1", code=1).stderr
    assert "Traceback" not in wrong


def test_failed_logins_are_one_sentence_with_what_to_check(
    caudal: Caudal, secured: SecuredCluster, tmp_path: Path
) -> None:
    def said(file: str, *words: str) -> str:
        text = caudal(*(words or ("topic", "list")), "--client-config", file, code=1).stderr
        assert "Traceback" not in text
        assert "rdkafka" not in text.lower()
        assert "%3|" not in text
        return text

    wrong_password = said(secured.config_of(ADMIN, "guess", "PLAIN"))
    assert "the name admin or its password is wrong" in wrong_password
    assert "guess" not in wrong_password
    assert "the name nobody or its password is wrong" in said(secured.config_of("nobody", "x", "SCRAM-SHA-256"))
    plain = said(secured.config_of(ADMIN, "admin-secret", "PLAIN", security_protocol="SASL_PLAINTEXT"))
    assert "TLS" in plain
    folder = tmp_path / "other"
    folder.mkdir()
    stranger = said(
        secured.config_of(ADMIN, "admin-secret", "PLAIN", ssl_truststore_location=str(Certificates(folder).ca_file))
    )
    assert "the certificate is not trusted" in stranger
    file = secured.config_of(ADMIN, "admin-secret", "PLAIN")
    port = secured.bootstrap.rpartition(":")[2]
    assert "not for this host name" in said(file, "topic", "list", "--bootstrap", f"localhost:{port}")
    assert "does this listener speak TLS?" in said(
        file, "topic", "list", "--bootstrap", f"127.0.0.1:{secured.broker.plain_port}"
    )
    without_tls = secured.config_of(ADMIN, "admin-secret", "PLAIN", security_protocol="SASL_PLAINTEXT")
    no_login = said(without_tls, "topic", "list", "--bootstrap", f"127.0.0.1:{secured.broker.plain_port}")
    assert "has no login at this listener" in no_login
    unknown = said(secured.config_of(ADMIN, "x", "PLAIN", sasl_mechanism="SCRAM-SHA-1"))
    assert "SCRAM-SHA-1" in unknown


def test_a_client_file_that_java_alone_can_read_is_refused_with_what_to_do(
    caudal: Caudal, secured: SecuredCluster
) -> None:
    file = secured.config_of(ADMIN, "x", "PLAIN", ssl_truststore_location="trust.jks", ssl_truststore_type="JKS")
    refused = caudal("topic", "list", "--client-config", file, code=2).stderr
    assert "ssl.truststore" in refused
    assert "keytool -importkeystore" in refused
    assert json.dumps("x") not in refused


def test_no_secret_is_written_or_shown(caudal: Caudal, secured: SecuredCluster, alice: tuple[str, str]) -> None:
    """After the tests above; those of the client files are known."""
    if not isinstance(secured.broker, SecuredBroker):
        pytest.skip("what Apache Kafka writes is its own affair")
    secrets = (ADMIN_PASSWORD, "wonderland", "looking-glass")
    caudal("user", "passwd", alice[0], "--password-file", "-", stdin="looking-glass\n")
    options = ("--bootstrap", secured.bootstrap, "--client-config", secured.config_of(ADMIN, ADMIN_PASSWORD, "PLAIN"))
    plain = {"bootstrap.servers": f"127.0.0.1:{secured.broker.plain_port}"}
    assert places_with_secrets(secured.broker, secrets, client=plain, tool_options=options) == []
