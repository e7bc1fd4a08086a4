import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.cluster.controller.scram_credentials import CHANGES_MAX, plan_scram_changes
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from core_broker.protocol.stored.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from core_broker.security.sasl.scram import BY_NAME, make_credential
from tests.support.controller_world import ControllerWorld

SALT = b"a salt of tests"
SALTED = BY_NAME["SCRAM-SHA-256"].salted_password(b"secret", SALT, 4096)


def upsertion(name: str, **fields: object) -> ScramCredentialUpsertion:
    values = {"mechanism": 1, "iterations": 4096, "salt": SALT, "salted_password": SALTED, **fields}
    return ScramCredentialUpsertion(name, **values)  # type: ignore[arg-type] # fields by name


def change(
    world: ControllerWorld, *changes: ScramCredentialDeletion | ScramCredentialUpsertion
) -> dict[str, ErrorCode]:
    """Carry out a request; the result of each user."""
    deletions = [change for change in changes if isinstance(change, ScramCredentialDeletion)]
    upsertions = [change for change in changes if isinstance(change, ScramCredentialUpsertion)]
    records, response = plan_scram_changes(AlterUserScramCredentialsRequest(deletions, upsertions), world.image)
    world.apply(records)
    names = [result.user for result in response.results]
    assert names == sorted(names)
    assert all((result.error_message is None) == (result.error_code == 0) for result in response.results)
    return {result.user: ErrorCode(result.error_code) for result in response.results}


def users(world: ControllerWorld) -> set[tuple[str, int]]:
    """Names and mechanisms of all credentials."""
    records = (record for record in world.image.carried.values() if isinstance(record, UserScramCredentialRecord))
    return {(record.name, record.mechanism) for record in records}


@pytest.fixture
def world() -> ControllerWorld:
    return ControllerWorld()


def test_the_controller_derives_from_the_salted_password_what_the_password_itself_gives(world: ControllerWorld) -> None:
    assert change(world, upsertion("alice")) == {"alice": ErrorCode.NONE}
    expected = make_credential("secret", "SCRAM-SHA-256", 4096, SALT)
    assert list(world.image.carried.values()) == [
        UserScramCredentialRecord("alice", 1, SALT, expected.stored_key, expected.server_key, 4096)
    ]


def test_a_user_has_a_credential_for_each_mechanism_and_the_newest_one_counts(world: ControllerWorld) -> None:
    change(world, upsertion("alice"))
    change(world, upsertion("alice", mechanism=2))
    change(world, upsertion("alice", iterations=8192))
    assert users(world) == {("alice", 1), ("alice", 2)}
    assert change(world, ScramCredentialDeletion("alice", 1)) == {"alice": ErrorCode.NONE}
    assert users(world) == {("alice", 2)}


def test_deletions_come_before_everything_else(world: ControllerWorld) -> None:
    change(world, upsertion("zoe"))
    request = AlterUserScramCredentialsRequest([ScramCredentialDeletion("zoe", 1)], [upsertion("alice")])
    records, _ = plan_scram_changes(request, world.image)
    assert [type(record) for record in records] == [RemoveUserScramCredentialRecord, UserScramCredentialRecord]


def test_a_user_that_is_named_twice_is_not_changed_at_all_and_the_others_are(world: ControllerWorld) -> None:
    change(world, upsertion("alice"), upsertion("bob"))
    results = change(
        world,
        ScramCredentialDeletion("alice", 1),
        upsertion("alice", mechanism=2),
        upsertion("carol"),
        upsertion("carol", mechanism=2),
        upsertion("carol", mechanism=2),
        ScramCredentialDeletion("bob", 1),
    )
    assert results == {
        "alice": ErrorCode.DUPLICATE_RESOURCE,
        "bob": ErrorCode.NONE,
        "carol": ErrorCode.DUPLICATE_RESOURCE,
    }
    assert users(world) == {("alice", 1)}


@pytest.mark.parametrize(
    "wrong,code",
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("x" * 1025), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("u", mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("u", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", salt=b"s" * 1025), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("u", salted_password=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialDeletion("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialDeletion("u", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (ScramCredentialDeletion("u", 1), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_a_wrong_change_is_refused_and_the_other_users_go_on(
    world: ControllerWorld, wrong: ScramCredentialDeletion | ScramCredentialUpsertion, code: ErrorCode
) -> None:
    assert change(world, wrong, upsertion("good")) == {wrong.name: code, "good": ErrorCode.NONE}
    assert users(world) == {("good", 1)}


@pytest.mark.parametrize("iterations", [4096, 16384])
def test_the_limits_of_iterations_are_allowed(world: ControllerWorld, iterations: int) -> None:
    assert change(world, upsertion("u", iterations=iterations)) == {"u": ErrorCode.NONE}


def test_an_old_cluster_cannot_store_credentials() -> None:
    for level, code in ((10, ErrorCode.UNSUPPORTED_VERSION), (11, ErrorCode.NONE)):
        image = MetadataImage(cluster_id="c", features={"metadata.version": level})
        records, response = plan_scram_changes(AlterUserScramCredentialsRequest([], [upsertion("u")]), image)
        assert [result.error_code for result in response.results] == [code]
        assert len(records) == (code is ErrorCode.NONE)


def test_a_request_with_too_many_changes_is_refused_as_a_whole(world: ControllerWorld) -> None:
    deletions = [ScramCredentialDeletion(f"user-{number}", 1) for number in range(CHANGES_MAX + 1)]
    with pytest.raises(BrokerError, match="POLICY_VIOLATION"):
        plan_scram_changes(AlterUserScramCredentialsRequest(deletions, []), world.image)


def test_neither_the_request_nor_the_record_nor_an_error_shows_a_secret(world: ControllerWorld) -> None:
    request = AlterUserScramCredentialsRequest([], [upsertion("alice"), upsertion("bob", iterations=1)])
    records, response = plan_scram_changes(request, world.image)
    shown = f"{request} {records} {response}"
    assert "alice" in shown
    (record,) = records
    assert isinstance(record, UserScramCredentialRecord)
    for secret in (SALTED, record.stored_key, record.server_key):
        assert repr(secret)[2:-1] not in shown
        assert secret.hex() not in shown


names = st.sampled_from(["", "a", "b", "c"])
mechanisms = st.integers(0, 3)
deletions = st.builds(ScramCredentialDeletion, names, mechanisms)
upsertions = st.builds(upsertion, names, mechanism=mechanisms, iterations=st.sampled_from([4095, 4096]))


@given(st.lists(deletions, max_size=5), st.lists(upsertions, max_size=5))
def test_every_user_of_a_request_gets_one_result_and_is_changed_once_or_not_at_all(
    to_delete: list[ScramCredentialDeletion], to_set: list[ScramCredentialUpsertion]
) -> None:
    world = ControllerWorld()
    change(world, upsertion("a"), upsertion("b", mechanism=2))
    before = users(world)
    asked = [change.name for change in to_delete] + [change.name for change in to_set]
    results = change(world, *to_delete, *to_set)
    assert set(results) == set(asked)
    changed = {name for name, code in results.items() if code is ErrorCode.NONE}
    assert {name for name, _ in users(world) ^ before} <= changed
    assert all(asked.count(name) == 1 for name in changed)
