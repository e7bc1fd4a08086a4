"""Settings of authorization: whether ACLs are enforced, and for whom they are not."""

from typing import Final

from core_broker.service.settings import (
    BOOLEAN,
    INT,
    LONG,
    STRING,
    Check,
    Kind,
    Settings,
    at_least,
    between,
    one_of,
    optional,
    setting,
)
from core_broker.settings.listeners import LISTENER_NAMES

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_AUTHORIZER: Final = Kind[str | None](
    name="class", wire=8, read=lambda text: text or None, write=lambda name: name or "", allowed=STANDARD_AUTHORIZER
)
PRINCIPALS: Final = Kind(
    name="list",
    wire=7,
    read=lambda text: tuple(part.strip() for part in text.split(";") if part.strip()),
    write=";".join,
    allowed="principals separated by semicolons, such as User:admin;User:CN=broker,O=Acme",
)
TYPED: Final = Check(
    accepts=lambda principals: all(principal.partition(":")[0] and ":" in principal for principal in principals),
    allowed=PRINCIPALS.allowed,
)


class AuthorizationSettings(Settings):
    """Whether ACLs are enforced, and for whom they are not."""

    authorizer_class_name: str | None = setting(_AUTHORIZER, default=None, check=one_of(STANDARD_AUTHORIZER))
    """Enforce ACLs by the rules of Kafka's standard authorizer. Not set: everything is allowed to everyone who can
    connect."""
    super_users: tuple[str, ...] = setting(PRINCIPALS, default=(), check=TYPED)
    """Principals that may do everything, separated by semicolons, such as User:admin;User:broker. Brokers and
    controllers must be among them: they cannot load the ACLs before they may talk to each other."""
    allow_everyone_if_no_acl_found: bool = setting(BOOLEAN, default=False)
    """Allow everything on a resource as long as no ACL applies to it, for anyone. Otherwise only super users can use
    such a resource."""
    early_start_listeners: tuple[str, ...] | None = setting(optional(LISTENER_NAMES), default=None)
    """Controller listeners that serve before the ACLs are loaded, when only super users are admitted. Not set: all of
    them. Listeners of brokers always wait."""


class AuditSettings(Settings):
    """What is written down about refusals and changes."""

    audit_log_file: str | None = setting(optional(STRING), default=None)
    """File of JSON lines about who was refused, and who changed what, from where and when. Not set: refusals are in
    the log of the service at level INFO, and changes at level DEBUG."""
    audit_log_max_bytes: int = setting(LONG, default=100 * 1024 * 1024, check=at_least(1024))
    """Size at which audit.log.file is renamed to .1, and a new one is begun."""
    audit_log_max_files: int = setting(INT, default=10, check=between(1, 1000))
    """How many such files are kept, with the current one; the oldest is deleted."""
    audit_log_max_events_per_second: int = setting(INT, default=200, check=at_least(1))
    """How many refusals, and how many changes, are written per second, a quarter of them of one principal at one
    address. Those that are left out are counted in a line of their own."""
