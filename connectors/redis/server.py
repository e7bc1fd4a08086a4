"""A client of Redis that does not retry, and its errors mapped to what the worker does about them."""

from typing import Any, Final, TypeAlias

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from connect.api.errors import ConfigError, ConnectError, DataError, RetriableError
from connectors.redis.config import RedisConfig

# The class is generic only for type checkers.
Client: TypeAlias = "redis.Redis"

ERRORS: Final = (redis.RedisError, OSError)
"""What the client raises about connections and commands."""

_CONNECT_SECONDS: Final = 10.0
_RETRIABLE: Final = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.NoPermissionError,
    redis.exceptions.MasterDownError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.TryAgainError,
    redis.exceptions.InvalidResponse,
    OSError,
)
_RETRIABLE_CODES: Final = frozenset(
    (
        *("OOM", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "TRYAGAIN", "BUSY", "MISCONF"),
        *("NOAUTH", "NOPERM", "WRONGPASS", "UNBLOCKED", "MOVED", "ASK", "NOTREADY", "NOPROTO", "NOGROUP"),
    )
)


def client_of(config: RedisConfig, *, encoding: str = "utf-8") -> Client:
    """A client; nothing is sent before its first command."""
    options: dict[str, Any] = {
        "socket_timeout": config.redis_timeout,
        "socket_connect_timeout": min(_CONNECT_SECONDS, config.redis_timeout),
        # A command may have been executed although it failed: the worker decides whether to repeat it.
        "retry": Retry(NoBackoff(), 0),
        "encoding": encoding,
        "protocol": 2,
        "client_name": "caudal-connect",
        **_set({"username": config.redis_username, "password": config.redis_password}),
        **_encryption(config),
    }
    try:
        if config.redis_uri:
            return redis.Redis.from_url(config.redis_uri, **options)
        options |= {"host": config.redis_host, "port": config.redis_port, "db": config.redis_database}
        return redis.Redis(**options, ssl=config.redis_tls)
    except (ValueError, redis.RedisError) as error:
        reason = f"must be a URI of Redis: {error}"
        raise ConfigError(f"Invalid value [hidden] for configuration redis.uri: {reason}") from None


def _set(options: dict[str, str]) -> dict[str, Any]:
    return {name: text for name, text in options.items() if text}


def _encryption(config: RedisConfig) -> dict[str, Any]:
    if not (config.redis_tls or config.redis_uri.startswith("rediss://")):
        return {}
    files = {
        "ssl_ca_certs": config.redis_cacert,
        "ssl_certfile": config.redis_key_cert,
        "ssl_keyfile": config.redis_key_file,
        "ssl_password": config.redis_key_password,
    }
    checks = {"ssl_cert_reqs": "none", "ssl_check_hostname": False} if config.redis_insecure else {}
    return {**_set(files), **checks}


def is_retriable(error: BaseException) -> bool:
    """Whether an error is about Redis and not about the command."""
    if isinstance(error, _RETRIABLE):
        return True
    text = str(error)
    # No record is to blame for a missing module, either.
    return text.partition(" ")[0] in _RETRIABLE_CODES or "unknown command" in text[:50]


def map_error(error: BaseException, *, doing: str) -> ConnectError:
    """The error to raise instead; `doing` says in a few words what failed."""
    kind = RetriableError if is_retriable(error) else DataError
    return kind(f"{doing}: {' '.join(str(error).split()) or type(error).__name__}")


def has_json(client: Client) -> bool:
    """Whether Redis has JSON; raises the client's errors."""
    return bool(execute(client, "COMMAND INFO", "JSON.SET") != [None])


def execute(client: Any, *command: str | bytes | int) -> Any:
    """Execute one command and return its reply; raises the client's errors."""
    return client.execute_command(*command)
