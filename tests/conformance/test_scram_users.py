"""Users with SCRAM credentials, created, described and removed by clients we did not write."""

from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism as PureScramMechanism
from kafka.admin import UserScramCredentialDeletion as PureDeletion
from kafka.admin import UserScramCredentialUpsertion as PureUpsertion

from tests.support.admin import admin_client, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.model import TIMEOUT_S
from tests.support.kafka import start_class

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def upsertion(user: str, mechanism: ScramMechanism, iterations: int = 4096) -> UserScramCredentialUpsertion:
    return UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, iterations), b"password", b"salt")


def alter(broker: BrokerProcess, *changes: UserScramCredentialAlteration) -> dict[str, int | None]:
    """The error of each user, None for success."""
    results: dict[str, int | None] = {}
    for user, future in admin_client(broker).alter_user_scram_credentials(list(changes)).items():
        try:
            future.result(TIMEOUT_S)
            results[user] = None
        except KafkaException as error:
            results[user] = error.args[0].code()
    return results


def describe(broker: BrokerProcess, user: str) -> dict[ScramMechanism, int]:
    """Mechanisms and iterations of a user; empty if the broker does not know it."""
    futures = admin_client(broker).describe_user_scram_credentials([user])
    assert isinstance(futures, dict)
    try:
        found: UserScramCredentialsDescription = futures[user].result(TIMEOUT_S)
    except KafkaException as error:
        assert error.args[0].code() == KafkaError.RESOURCE_NOT_FOUND  # noqa: PT017 - the code is the answer
        return {}
    return {info.mechanism: info.iterations for info in found.scram_credential_infos}


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with start_class()(tmp_path_factory.mktemp("users")) as process:
        yield process


def test_a_user_gets_credentials_changes_them_and_loses_them(broker: BrokerProcess, name: str) -> None:
    assert alter(broker, upsertion(name, SHA_256)) == {name: None}
    eventually(lambda: describe(broker, name) == {SHA_256: 4096})
    assert alter(broker, upsertion(name, SHA_512, 8192)) == {name: None}
    assert alter(broker, upsertion(name, SHA_256, 10_000)) == {name: None}
    eventually(lambda: describe(broker, name) == {SHA_256: 10_000, SHA_512: 8192})
    assert alter(broker, UserScramCredentialDeletion(name, SHA_256)) == {name: None}
    eventually(lambda: describe(broker, name) == {SHA_512: 8192})
    assert alter(broker, UserScramCredentialDeletion(name, SHA_512)) == {name: None}
    eventually(lambda: describe(broker, name) == {})


def test_each_user_of_a_request_has_its_own_result(broker: BrokerProcess, name: str) -> None:
    assert alter(
        broker,
        upsertion(f"{name}-good", SHA_256),
        upsertion(f"{name}-twice", SHA_256),
        upsertion(f"{name}-twice", SHA_512),
        upsertion(f"{name}-weak", SHA_256, 4095),
        upsertion(f"{name}-slow", SHA_256, 16385),
        UserScramCredentialDeletion(f"{name}-missing", SHA_256),
    ) == {
        f"{name}-good": None,
        f"{name}-twice": KafkaError.DUPLICATE_RESOURCE,
        f"{name}-weak": KafkaError.UNACCEPTABLE_CREDENTIAL,
        f"{name}-slow": KafkaError.UNACCEPTABLE_CREDENTIAL,
        f"{name}-missing": KafkaError.RESOURCE_NOT_FOUND,
    }
    eventually(lambda: describe(broker, f"{name}-good") == {SHA_256: 4096})
    assert describe(broker, f"{name}-twice") == {}


def all_users(broker: BrokerProcess) -> set[str]:
    future = admin_client(broker).describe_user_scram_credentials()
    assert isinstance(future, Future)
    return set(future.result(TIMEOUT_S))


def test_all_users_are_described(broker: BrokerProcess, name: str) -> None:
    users = {f"{name}-{number}" for number in range(3)}
    alter(broker, *(upsertion(user, SHA_512) for user in users))
    eventually(lambda: users <= all_users(broker))


def test_kafka_python_manages_users(broker: BrokerProcess, name: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)

    def iterations() -> dict[PureScramMechanism, int]:
        found = client.describe_user_scram_credentials([name])[name]
        return {info["mechanism"]: info["iterations"] for info in found["credential_infos"]}

    try:
        client.alter_user_scram_credentials([PureUpsertion(name, PureScramMechanism.SCRAM_SHA_256, "password")])
        eventually(lambda: list(iterations()) == [PureScramMechanism.SCRAM_SHA_256])
        client.alter_user_scram_credentials([PureDeletion(name, PureScramMechanism.SCRAM_SHA_256)])
        eventually(lambda: describe(broker, name) == {})
    finally:
        client.close()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_users_are_still_there_after_a_restart(own_broker: BrokerProcess, name: str, kill: bool) -> None:
    other = f"{name}-2"
    assert alter(own_broker, upsertion(name, SHA_256), upsertion(other, SHA_512)) == {name: None, other: None}
    own_broker.restart(kill=kill)
    eventually(lambda: all_users(own_broker) == {name, other})
    assert describe(own_broker, name) == {SHA_256: 4096}
