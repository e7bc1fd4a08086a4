"""Errors of Redis, by what to do about them."""

import pytest
import redis

from connect.api.errors import ConfigError, DataError, RetriableError
from connectors.redis import server
from connectors.redis.config import RedisConfig


@pytest.mark.parametrize(
    "error",
    [
        redis.ConnectionError("refused"),
        redis.TimeoutError("slow"),
        redis.exceptions.BusyLoadingError("loading"),
        redis.exceptions.ReadOnlyError("replica"),
        redis.exceptions.OutOfMemoryError("full"),
        redis.exceptions.AuthenticationError("who"),
        redis.exceptions.NoPermissionError("no"),
        redis.ResponseError("OOM command not allowed when used memory > 'maxmemory'."),
        redis.ResponseError("MISCONF Errors writing to the AOF file"),
        redis.ResponseError("NOREPLICAS Not enough good replicas to write."),
        redis.ResponseError("unknown command 'JSON.SET', with args beginning with: 'a'"),
        ConnectionResetError("reset"),
    ],
)
def test_what_is_about_redis_is_retriable(error: Exception) -> None:
    assert isinstance(server.map_error(error, doing="x"), RetriableError)


@pytest.mark.parametrize(
    "error",
    [
        redis.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"),
        redis.ResponseError("value is not a valid float"),
        redis.DataError("Invalid input of type: 'dict'"),
        UnicodeEncodeError("ascii", "ä", 0, 1, "no"),
    ],
)
def test_what_is_about_a_record_is_bad_data(error: Exception) -> None:
    assert isinstance(server.map_error(error, doing="x"), DataError)


def test_a_uri_that_is_none_is_refused_without_showing_it() -> None:
    config = RedisConfig.parse({"redis.uri": "redis://user:secret@host:port/0"})
    with pytest.raises(ConfigError, match=r"redis\.uri") as refused:
        server.client_of(config)
    assert "secret" not in str(refused.value)


def test_the_options_are_what_the_client_connects_with() -> None:
    given = {"redis.host": "h", "redis.port": "7", "redis.database": "3", "redis.username": "u", "redis.password": "p"}
    with server.client_of(RedisConfig.parse({**given, "redis.tls": "true", "redis.insecure": "true"})) as client:
        found = client.connection_pool.connection_kwargs
    wanted = {"host": "h", "port": 7, "db": 3, "username": "u", "password": "p", "ssl_cert_reqs": "none"}
    assert {name: found[name] for name in wanted} == wanted
