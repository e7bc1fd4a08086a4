"""Settings of guarded topics: the registry that knows the schema ids, and the names of subjects."""

from typing import Final

from core_broker.service.settings import (
    INT,
    LIST,
    LONG,
    PASSWORD,
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

TOPIC_NAME: Final = "TopicNameStrategy"
RECORD_NAME: Final = "RecordNameStrategy"
TOPIC_RECORD_NAME: Final = "TopicRecordNameStrategy"
_STRATEGIES: Final = (TOPIC_NAME, RECORD_NAME, TOPIC_RECORD_NAME)
_JAVA_PACKAGE: Final = "io.confluent.kafka.serializers.subject."


def _strategy(text: str) -> str:
    name = text.removeprefix(_JAVA_PACKAGE)
    if name not in _STRATEGIES:
        allowed = ", ".join(_JAVA_PACKAGE + known for known in _STRATEGIES)
        raise ValueError(f"must be one of {allowed}, or the last word of one")
    return name


STRATEGY: Final = Kind(
    name="string",
    wire=2,
    read=_strategy,
    write=lambda name: _JAVA_PACKAGE + name,
    allowed=f"one of {', '.join(_STRATEGIES)}",
)
_URLS: Final = Check(
    accepts=lambda urls: all(url.startswith(("http://", "https://")) for url in urls),
    allowed="URLs that begin with http:// or https://, separated by commas",
)
_USER_INFO: Final = Check(accepts=lambda text: ":" in text, allowed="user:password")


class SchemaGuardSettings(Settings):
    """How a broker looks up the schema ids in records of guarded topics."""

    confluent_schema_registry_url: tuple[str, ...] = setting(LIST, default=(), check=_URLS)
    """Addresses of the schema registry, tried in order. Guarded topics need at least one."""
    confluent_basic_auth_credentials_source: str = setting(STRING, default="URL", check=one_of("URL", "USER_INFO"))
    """Where the user and password for the registry are: in its address or in confluent.basic.auth.user.info."""
    confluent_basic_auth_user_info: str | None = setting(optional(PASSWORD), default=None, check=_USER_INFO)
    """User and password for the registry, as user:password."""
    confluent_bearer_auth_token: str | None = setting(optional(PASSWORD), default=None)
    """Token for the registry, instead of user and password."""
    confluent_ssl_truststore_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the CA certificates for the registry. Not set: those of the system."""
    confluent_ssl_keystore_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the broker's certificate and key, for a registry that asks for one."""
    confluent_ssl_key_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the key, if it is not in that file."""
    confluent_ssl_key_password: str | None = setting(optional(PASSWORD), default=None)
    """Password of that key, if it is encrypted."""
    confluent_schema_validator_request_timeout_ms: int = setting(INT, default=3000, check=between(1, 60_000))
    """Time-out of one request to one address of the registry."""
    confluent_schema_validator_timeout_ms: int = setting(INT, default=10_000, check=between(1, 60_000))
    """Time-out of all lookups for one batch; after it the producer gets a retriable error."""
    confluent_schema_validator_connections_max: int = setting(INT, default=8, check=between(1, 256))
    """Maximum number of concurrent requests to the registry."""
    confluent_schema_validator_cache_size: int = setting(INT, default=10_000, check=at_least(1000))
    """Maximum number of cached responses of the registry, of each kind."""
    confluent_schema_validator_cache_ttl_ms: int = setting(LONG, default=300_000, check=at_least(1000))
    """How long a found schema is cached: a deleted one is rejected after at most this time."""
    confluent_schema_validator_missing_ttl_ms: int = setting(LONG, default=1000, check=at_least(100))
    """How long a missing schema is cached, and how long no request is sent to a registry that did not respond."""
