"""The users of a secured platform and what they may do, put into the cluster and the registry at its first start.

What an administrator changes afterwards stays: a later start creates only users that are missing, with their rules.
"""

from collections.abc import Iterable
from typing import Final

from core_broker.client.acls import Acl, Operation, PatternType, Permission, ResourceType
from core_broker.client.admin import Admin
from core_broker.client.settings import ClientSettings
from deploy.certificates.private_files import write_private
from deploy.security.folder import ADMIN, LAUNCHER, NODE, SecurityFolder
from deploy.security.settings import MECHANISMS, USERS
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings

_TIMEOUT_MS: Final = 60_000
_EVERY: Final = "*"

_Rule = tuple[ResourceType, str, PatternType, tuple[Operation, ...]]
_LITERAL, _PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
_USE: Final = (Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
_CONNECTS_TOPICS: Final = ("connect-configs", "connect-offsets", "connect-status", "connect-redriven")
_STREAMS: Final = "_streams-"
"""The beginning of the names of everything that the service of SQL has for itself."""
RULES: Final[dict[str, tuple[_Rule, ...]]] = {
    # Its connectors move data from and to any topic; which ones, and who may say so, is decided by Connect's own rules.
    "connect": (
        *((ResourceType.TOPIC, topic, _LITERAL, (Operation.ALL,)) for topic in _CONNECTS_TOPICS),
        (ResourceType.TOPIC, _EVERY, _LITERAL, _USE),
        (ResourceType.GROUP, "connect-", _PREFIXED, (Operation.READ, Operation.DESCRIBE, Operation.DELETE)),
        # Readers of a whole topic are in no group, but librdkafka asks for the coordinator of their name.
        (ResourceType.GROUP, "caudal-reader", _LITERAL, (Operation.DESCRIBE,)),
        (ResourceType.TRANSACTIONAL_ID, "connect-", _PREFIXED, (Operation.WRITE, Operation.DESCRIBE)),
    ),
    # Every caller may do what streams may do: at first only what it needs for itself. Topics that statements read and
    # write are allowed one by one, by `caudal acl allow User:streams`.
    "streams": (
        (ResourceType.TOPIC, _STREAMS, _PREFIXED, (Operation.ALL,)),
        (ResourceType.GROUP, _STREAMS, _PREFIXED, (Operation.READ, Operation.DESCRIBE, Operation.DELETE)),
        (ResourceType.GROUP, "caudal-reader", _LITERAL, (Operation.DESCRIBE,)),
        (ResourceType.TRANSACTIONAL_ID, _STREAMS, _PREFIXED, (Operation.WRITE, Operation.DESCRIBE)),
    ),
}
"""What services may do with the cluster. The administrator is a super user, and the REST proxy acts as its caller."""
_SUBJECTS: Final[dict[str, tuple[str, ...]]] = {
    NODE: ("READ",),
    "connect": ("READ", "WRITE"),
    "streams": ("READ", "WRITE"),
}
"""What services may do with every subject of the registry."""


def create_users(folder: SecurityFolder, *, bootstrap: str) -> None:
    """Create the users that the cluster does not have, and their rules. Raises ClientError and OSError.

    `bootstrap` is a listener that takes certificates.
    """
    settings = ClientSettings(
        bootstrap_servers=bootstrap,
        client_id="caudal-launcher",
        timeout_ms=_TIMEOUT_MS,
        properties={"log_level": "0", **folder.certificate_properties(LAUNCHER)},
    )
    security, done = Admin(settings).security, folder.done_file("cluster")
    # Without our mark the passwords in the folder are new, whatever the cluster has.
    known = {user.name for user in security.users()} if done.exists() else set()
    missing = [user for user in (*USERS, ADMIN) if user not in known]
    for user in missing:
        for mechanism in MECHANISMS:
            security.set_password(user, folder.password(user), mechanism=mechanism)
    if acls := [acl for user in missing for acl in acls_of(user)]:
        security.create_acls(acls)
    write_private(done, b"")


def create_registry_rules(folder: SecurityFolder, *, url: str) -> None:
    """Let the services use a registry that has no rules of ours yet. Raises ClientError and OSError."""
    done = folder.done_file("registry")
    if done.exists():
        return
    tls = folder.launcher_tls()
    with RegistryClient(RegistryClientSettings(urls=(url,), tls_context=tls, timeout_ms=_TIMEOUT_MS)) as client:
        client.add_access_rules(
            [
                {
                    "principal": f"User:{user}",
                    "resource": _EVERY,
                    "resource_type": "SUBJECT",
                    "operation": operation,
                    "permission": "ALLOW",
                }
                for user, operations in _SUBJECTS.items()
                for operation in operations
            ]
        )
    write_private(done, b"")


def acls_of(user: str) -> Iterable[Acl]:
    """What a user of a service may do."""
    for resource_type, name, pattern, operations in RULES.get(user, ()):
        for operation in operations:
            yield Acl(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern,
                principal=f"User:{user}",
                host=_EVERY,
                operation=operation,
                permission=Permission.ALLOW,
            )
