"""Workers whose callers log in, and one request for each route with exactly the right that it needs."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tests.support.connect import ConnectProcess
from tests.support.registry_access import Administrator, User
from tests.support.secured import Certificates, SecuredBroker

ADMIN: Final = ("admin", "admin-pass-4711")
ALICE: Final = ("alice", "alice-pass-4711")
BOB: Final = ("bob", "bob-pass-4711")

SINK: Final = {
    "connector.class": "FileStreamSink",
    "topics": "orders-in",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "orders-dead",
}
_CLASS: Final = "FileStreamSink"
_ONE: Final = "/connectors/{connector}"


@dataclass(frozen=True)
class Case:
    """A request of a route."""

    need: str = ""
    """The operation on the connector `orders`, or on Connect; none where every caller may."""
    body: Any = None
    query: str = ""

    @property
    def is_about_connector(self) -> bool:
        """Whether the right is one on a connector."""
        return self.need.endswith(" CONNECTOR")


def _on_connector(operation: str, **more: Any) -> Case:
    return Case(f"{operation} CONNECTOR", **more)


def _on_connect(operation: str, body: Any = None) -> Case:
    return Case(f"{operation} CONNECT", body)


_RULE: Final = {
    "principal": "User:bob",
    "resource": "x",
    "resource_type": "CONNECTOR",
    "operation": "READ",
    "permission": "ALLOW",
}

CASES: Final[Mapping[str, Case]] = {
    "GET /": Case(),
    "GET /health": Case(),
    "GET /metrics": _on_connect("DESCRIBE"),
    "GET /connectors": Case(),
    "POST /connectors": _on_connector("CREATE", body={"name": "orders-new", "config": SINK}),
    "POST /connectors/dry-run": _on_connector("CREATE", body={"config": {**SINK, "name": "orders"}}),
    f"GET {_ONE}": _on_connector("DESCRIBE_CONFIGS"),
    f"DELETE {_ONE}": _on_connector("DELETE"),
    f"GET {_ONE}/config": _on_connector("DESCRIBE_CONFIGS"),
    f"PUT {_ONE}/config": _on_connector("ALTER_CONFIGS", body=SINK),
    f"PATCH {_ONE}/config": _on_connector("ALTER_CONFIGS", body={"tasks.max": "2"}),
    f"GET {_ONE}/tasks": _on_connector("DESCRIBE_CONFIGS"),
    f"GET {_ONE}/tasks-config": _on_connector("DESCRIBE_CONFIGS"),
    f"GET {_ONE}/status": _on_connector("DESCRIBE"),
    f"GET {_ONE}/tasks/{{task}}/status": _on_connector("DESCRIBE"),
    f"PUT {_ONE}/pause": _on_connector("ALTER"),
    f"PUT {_ONE}/resume": _on_connector("ALTER"),
    f"PUT {_ONE}/stop": _on_connector("ALTER"),
    f"POST {_ONE}/restart": _on_connector("ALTER", query="?includeTasks=true"),
    f"POST {_ONE}/tasks/{{task}}/restart": _on_connector("ALTER"),
    f"GET {_ONE}/offsets": _on_connector("DESCRIBE"),
    f"PATCH {_ONE}/offsets": _on_connector("ALTER", body={"offsets": [{"partition": {}, "offset": None}]}),
    f"DELETE {_ONE}/offsets": _on_connector("ALTER"),
    f"GET {_ONE}/topics": _on_connector("DESCRIBE"),
    f"PUT {_ONE}/topics/reset": _on_connector("ALTER"),
    f"GET {_ONE}/dlq": _on_connector("READ"),
    f"POST {_ONE}/dlq/redrive": _on_connector("WRITE", body={"selection": {"all": True}, "dry_run": True}),
    "GET /connector-plugins": Case(),
    "GET /connector-plugins/{plugin}/config": Case(),
    "PUT /connector-plugins/{plugin}/config/validate": _on_connector("CREATE", body={**SINK, "name": "orders"}),
    "GET /admin/loggers": _on_connect("DESCRIBE_CONFIGS"),
    "GET /admin/loggers/{logger}": _on_connect("DESCRIBE_CONFIGS"),
    "PUT /admin/loggers/{logger}": _on_connect("ALTER_CONFIGS", body={"level": "INFO"}),
    "GET /security/acls": _on_connect("DESCRIBE"),
    "POST /security/acls": _on_connect("ALTER", body=[_RULE]),
    "DELETE /security/acls": _on_connect("ALTER", body=[_RULE]),
}
PASSES_WITH_400: Final = (f"PATCH {_ONE}/offsets", f"DELETE {_ONE}/offsets")
"""The connector is not stopped."""


def path_of(route: str, connector: str = "orders") -> tuple[str, str]:
    """The method and the path of a request."""
    names = {"connector": connector, "task": "0", "plugin": _CLASS, "logger": "root"}
    method, path = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], route).split()
    return method, path + CASES[route].query


def right(operation: str, resource: str = "orders", *, who: str = "User:alice", **fields: str) -> dict[str, str]:
    """A rule that allows something on a connector; on Connect for `connect`."""
    kind = "CONNECT" if resource == "connect" else "CONNECTOR"
    return {
        "principal": who,
        "operation": operation,
        "permission": "ALLOW",
        "resource_type": kind,
        "resource": resource,
        **fields,
    }


def granted(need: str, *connectors: str) -> list[dict[str, str]]:
    """The rules that give alice this right."""
    operation, kind = need.split()
    return (
        [right(operation, one) for one in (connectors or ("orders",))]
        if kind == "CONNECTOR"
        else [right(operation, "connect")]
    )


def all_but(need: str, connector: str = "orders") -> list[dict[str, str]]:
    """All rights but this one, and what includes it."""
    operation, kind = need.split()
    others = {"READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
    implying = {"DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"}, "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"}}
    left = others - {operation} - implying.get(operation, set())
    if operation == "CREATE":  # either is enough to have a configuration checked
        left -= {"ALTER_CONFIGS"}
    return [right(one, "connect" if kind == "CONNECT" else connector) for one in sorted(left)]


def add_users(bootstrap: str, users: Iterable[tuple[str, str]] = (ADMIN, ALICE, BOB)) -> None:
    """Add users to a broker."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(name, info, password.encode()) for name, password in users
    ]
    client = AdminClient({"bootstrap.servers": bootstrap})
    for future in client.alter_user_scram_credentials(wanted).values():
        future.result(30)


def allow_alice(bootstrap: str, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    """Let alice do something to what begins with a name."""
    rules = [
        AclBinding(kind, name, ResourcePatternType.PREFIXED, "User:alice", "*", operation, AclPermissionType.ALLOW)
        for operation in operations
    ]
    client = AdminClient({"bootstrap.servers": bootstrap})
    for future in client.create_acls(rules).values():
        future.result(30)


def login_settings(broker: SecuredBroker, certificates: Certificates) -> dict[str, str]:
    """Settings of a service whose callers are the users of a broker."""
    return {
        "authentication.method": "BASIC",
        "authentication.kafka.bootstrap.servers": broker.address,
        "authentication.kafka.security.protocol": "SASL_SSL",
        "authentication.kafka.sasl.mechanism": "SCRAM-SHA-512",
        "authentication.kafka.ssl.ca.location": str(certificates.ca_file),
        "authentication.failures.per.minute": "1000000",
        "super.users": "User:admin",
    }


class SecuredConnect:
    """A broker, a worker that leads and one that follows, and those who use them."""

    def __init__(
        self, folder: Path, broker: SecuredBroker, certificates: Certificates, workers: list[ConnectProcess]
    ) -> None:
        self.folder = folder
        self.broker = broker
        self.certificates = certificates
        self.leader, self.follower = workers
        self.admin = Administrator(self.leader.url, ADMIN)
        self.alice = User(self.leader.url, ALICE)
        self.afar = User(self.follower.url, ALICE)
        """Alice at the worker that follows."""
        self.strangers = (User(self.leader.url, None), User(self.leader.url, ("alice", "wrong")))

    def as_alice(self, *roles: str) -> dict[str, str]:
        """Overrides that make clients of a connector log in as alice."""
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        login = {
            "bootstrap.servers": self.broker.address,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{module} required username="{ALICE[0]}" password="{ALICE[1]}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "open" / "ca.pem"),
        }
        return {f"{role}.override.{key}": text for role in roles for key, text in login.items()}

    def allow_in_kafka(self, kind: ResourceType, name: str, *operations: AclOperation) -> None:
        """Let alice do something in the cluster."""
        allow_alice(f"127.0.0.1:{self.broker.plain_port}", kind, name, *operations)

    def send(self, topic: str, value: bytes) -> None:
        """Write a record."""
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{self.broker.plain_port}"})
        producer.produce(topic, value)
        assert producer.flush(30) == 0

    def stored_config(self, name: str) -> dict[str, str]:
        """The configuration of a connector in the config topic."""
        found: dict[str, str] = self.stored(f"connector-{name}")[-1]["properties"]
        return found

    def stored(self, key: str) -> list[Any]:
        """The values of a key in the config topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{self.broker.plain_port}",
                "group.id": "test",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition("connect-configs", 0, OFFSET_BEGINNING)])
        found = []
        while (message := consumer.poll(20)) is not None and message.error() is None:
            value = message.value()
            if message.key() == key.encode() and value is not None:
                found.append(json.loads(value))
        consumer.close()
        return found

    def close(self) -> None:
        """Close all connections."""
        for one in (self.admin, self.alice, self.afar, *self.strangers):
            one.close()


@contextmanager
def secured_connect(folder: Path, *, settings: Mapping[str, str] | None = None) -> Iterator[SecuredConnect]:
    """One of each for as long as the block lasts."""
    certificates = Certificates(folder)
    with SecuredBroker(folder / "broker", certificates) as broker:
        plain = f"127.0.0.1:{broker.plain_port}"
        (folder / "open").mkdir()
        shutil.copy(certificates.ca_file, folder / "open" / "ca.pem")
        add_users(plain)
        reach = {
            "inter.worker.key.ttl.ms": "1000",
            "connector.allowed.paths": str(folder / "open"),
            "connector.allowed.addresses": f"127.0.0.1:9,{broker.address},*.example.com,10.0.0.0/8",
        }
        own = {**login_settings(broker, certificates), **reach, **(settings or {})}
        workers = [ConnectProcess(folder / name, bootstrap=plain, settings=own) for name in ("leads", "follows")]
        with workers[0], workers[1]:
            world = SecuredConnect(folder, broker, certificates, workers)
            yield world
            world.close()
