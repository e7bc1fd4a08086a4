"""Users with SCRAM credentials, from the request to what a login asks for."""

import logging

import pytest

from core_broker.errors import ErrorCode
from core_broker.handlers.table import BROKER_BY_KEY, CONTROLLER_BY_KEY
from core_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from core_broker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from core_broker.security.sasl.scram import BY_NAME, make_credential
from tests.support.handler_world import HandlerWorld

SALT = b"a salt of tests"
SALTED = BY_NAME["SCRAM-SHA-256"].salted_password(b"secret", SALT, 4096)


async def alter(
    world: HandlerWorld, *changes: ScramCredentialUpsertion, delete: tuple[ScramCredentialDeletion, ...] = ()
) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(list(delete), list(changes))
    response = await world.call(request, AlterUserScramCredentialsResponse, 0)
    return {result.user: result.error_code for result in response.results}


async def describe(world: HandlerWorld, *names: str) -> dict[str, tuple[int, list[CredentialInfo]]]:
    request = DescribeUserScramCredentialsRequest([UserName(name) for name in names])
    response = await world.call(request, DescribeUserScramCredentialsResponse, 0)
    assert response.error_code == 0
    return {result.user: (result.error_code, result.credential_infos) for result in response.results}


async def test_a_user_can_log_in_as_soon_as_the_response_is_there(world: HandlerWorld) -> None:
    assert await alter(world, ScramCredentialUpsertion("alice", 1, 4096, SALT, SALTED)) == {"alice": 0}
    expected = make_credential("secret", "SCRAM-SHA-256", 4096, SALT)
    assert world.services.credentials.find("alice", "SCRAM-SHA-256") == expected
    assert await alter(world, delete=(ScramCredentialDeletion("alice", 1),)) == {"alice": 0}
    assert world.services.credentials.find("alice", "SCRAM-SHA-256") is None


async def test_users_are_described_without_salts_and_keys(world: HandlerWorld) -> None:
    await alter(world, *(ScramCredentialUpsertion(name, 1, 4096, SALT, SALTED) for name in ("zoe", "alice")))
    await alter(world, ScramCredentialUpsertion("zoe", 2, 8192, SALT, SALTED))
    everyone = {
        "alice": (0, [CredentialInfo(1, 4096)]),
        "zoe": (0, [CredentialInfo(1, 4096), CredentialInfo(2, 8192)]),
    }
    assert await describe(world) == everyone
    response = await world.call(DescribeUserScramCredentialsRequest(None), DescribeUserScramCredentialsResponse, 0)
    assert [result.user for result in response.results] == ["alice", "zoe"]
    assert await describe(world, "zoe", "nobody", "alice", "alice") == {
        "zoe": everyone["zoe"],
        "nobody": (ErrorCode.RESOURCE_NOT_FOUND, []),
        "alice": (ErrorCode.DUPLICATE_RESOURCE, []),
    }


async def test_secrets_are_not_logged(world: HandlerWorld, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await alter(world, ScramCredentialUpsertion("alice", 1, 4096, SALT, SALTED))
    shown = " ".join(str(vars(record)) for record in caplog.records)
    assert "alice" in shown
    assert repr(SALTED)[2:-1] not in shown


def test_only_brokers_describe_users_and_tokens() -> None:
    assert {38, 39, 40, 51} <= CONTROLLER_BY_KEY.keys()
    assert not {41, 50} & CONTROLLER_BY_KEY.keys()
    assert {38, 39, 40, 41, 50, 51} <= BROKER_BY_KEY.keys()
