"""The settings of a schema registry, with Confluent's names where it has one."""

from collections.abc import Iterable

from typing_extensions import override

from core_broker.service.settings import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Check,
    Kind,
    Problem,
    at_least,
    between,
    one_of,
    optional,
    setting,
)
from core_broker.web_access.settings import BASIC, RuleSettings

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")

LEVEL = Kind(name="string", wire=2, read=str.upper, write=str, allowed=f"one of {', '.join(LEVELS)}")
INCOMPATIBLE_CODES = Check(accepts=lambda code: code in (409, 40901), allowed="40901 or 409")
DATABASE_URL = Check(
    accepts=lambda url: url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://", "postgres://")),
    allowed="sqlite:///path/to/file or postgresql://user:password@host/database",
)


class RegistrySettings(RuleSettings):
    """The settings of a schema registry."""

    IGNORED = {
        "debug": "use logging.level",
        "host.name": "there is no leader for other registries to find",
        "inter.instance.*": "registries do not talk to each other: they share a database",
        "kafkastore.*": "schemas are kept in SQL: see database.url",
        "leader.eligibility": "there is no leader",
        "master.eligibility": "there is no leader",
        "metrics.jmx.prefix": "metrics are served at /metrics",
        "schema.registry.group.id": "there is no leader to elect",
    }
    REFUSED = {
        "authentication.roles": "there are no roles: use access rules (/security/acls)",
        "ssl.keystore.*": "use ssl.certificate.location and ssl.key.location, with PEM files",
        "ssl.truststore.*": "use ssl.ca.location, with a PEM file",
    }

    listeners: tuple[str, ...] = setting(LIST, default=("http://:8081",))
    """Where HTTP is served: `http://host:port` or `https://host:port`, several separated by commas. An empty host
    means every address, port 0 any free port."""

    registry_authfile: str | None = setting(optional(STRING), default=None)
    """File of users and permissions in the format of Karapace (`registry_authfile`), read again when it changes. Its
    users log in with authentication.method=BASIC, beside those of the cluster if there is one; its permissions count in
    addition to the access rules. As in Karapace, a permission is for all names that begin with a match. A changed
    password counts after authentication.cache.ttl.ms at the latest."""

    database_url: str = setting(STRING, default="sqlite:///caudal-registry.db", check=DATABASE_URL, sensitive=True)
    """Where schemas are kept, as an SQLAlchemy URL: `sqlite:///path/to/file` for one registry,
    `postgresql://user:password@host/database` for any number of registries side by side."""
    database_pool_size: int = setting(INT, default=10, check=between(1, 1000))
    """Size of the database connection pool; further requests wait for a free connection."""
    database_timeout_ms: int = setting(INT, default=10_000, check=at_least(100))
    """How long to wait for a connection to the database, and for one statement or lock."""

    schema_compatibility_level: str = setting(
        LEVEL, default="BACKWARD", check=one_of(*LEVELS), aliases=("avro.compatibility.level",)
    )
    """The compatibility level of subjects for which none was set over HTTP."""
    schema_incompatible_error_code: int = setting(INT, default=40901, check=INCOMPATIBLE_CODES)
    """The `error_code` of incompatible schemas, beside HTTP status 409: Confluent sends 40901 since 8.0.4, 8.1.2 and
    8.2.0, and sent 409 before; Karapace sends 409."""
    schema_max_bytes: int = setting(LONG, default=1024 * 1024, check=at_least(1))
    """Longest schema text that is accepted; a longer one is error 42209."""
    schema_max_depth: int = setting(INT, default=100, check=between(1, 500))
    """Deepest nesting of a schema that is accepted."""
    schema_max_elements: int = setting(INT, default=20_000, check=at_least(1))
    """Maximum number of types, fields, symbols and other elements in a schema."""
    schema_reject_empty_subject: bool = setting(BOOLEAN, default=False, aliases=("schema.validate.empty.subject",))
    """Refuse the empty subject name."""
    schema_search_default_limit: int = setting(INT, default=1000, check=at_least(1))
    """How many schemas a search (`GET /schemas`) returns when the request names no limit."""
    schema_search_max_limit: int = setting(INT, default=1000, check=at_least(1))
    """Maximum number of schemas that a search returns."""
    mode_mutability: bool = setting(BOOLEAN, default=True)
    """Whether modes (READONLY, IMPORT, ...) can be changed over HTTP."""

    dek_local_kms_secret: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """Secret of the `local-kms` key service, for shared key encryption keys without a secret of their own."""

    dek_registry_max_keys: int = setting(INT, default=10_000, check=at_least(1))
    """Maximum number of keys of each kind (key encryption keys, and data encryption keys)."""

    answer_cache_bytes: int = setting(LONG, default=64 * 1024 * 1024, check=at_least(0))
    """Memory for cached responses to "which schema has this id"; 0 turns the cache off."""
    answer_cache_ttl_ms: int = setting(INT, default=10_000, check=at_least(0))
    """How long such a response is served from memory before the database is asked again: the time until this registry
    notices that another one deleted a schema permanently."""

    @override
    def problems(self) -> Iterable[Problem]:
        """The users of a file need a way to log in."""
        yield from super().problems()
        if self.registry_authfile is not None and BASIC not in self.methods:
            yield self._problem("registry.authfile", "its users log in with authentication.method=BASIC: set that, too")

    @override
    def _password_problem(self) -> str | None:
        if self.registry_authfile is not None and not self.authentication_kafka_properties:
            return None  # the users are those of the file alone
        return super()._password_problem()
