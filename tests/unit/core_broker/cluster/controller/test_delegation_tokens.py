import pytest

from core_broker.cluster.controller.delegation_tokens import (
    REMOVALS_MAX,
    plan_expiry,
    plan_removals,
    plan_renewal,
    plan_token,
)
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.principals import Principal
from core_broker.protocol.stored.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord
from core_broker.security.tokens import DelegationToken, TokenStore
from core_broker.service.clock import ManualClock
from core_broker.service.settings import LONG_MAX
from core_broker.settings import BrokerSettings
from tests.support.controller_world import ControllerWorld

ALICE, BOB, CAROL, DORA = (Principal("User", name) for name in ("alice", "bob", "carol", "dora"))
NOW, HOUR, DAY = 1_000_000, 3_600_000, 86_400_000


@pytest.fixture
def world() -> ControllerWorld:
    return ControllerWorld(delegation_token_secret_key="secret")


def create(world: ControllerWorld, **wanted: object) -> DelegationToken:
    values = {"owner": ALICE, "requester": BOB, "renewers": [CAROL], "lifetime_ms": -1, "now_ms": NOW, **wanted}
    token = plan_token(image=world.image, settings=world.settings, **values)  # type: ignore[arg-type] # fields by name
    world.apply([token.record])
    return token


def code_of(error: pytest.ExceptionInfo[BrokerError]) -> ErrorCode:
    return error.value.code


def test_a_token_lives_for_a_week_and_has_to_be_renewed_every_day(world: ControllerWorld) -> None:
    token = create(world)
    assert (token.owner, token.requester, token.renewers) == (ALICE, BOB, (CAROL,))
    assert (token.issued_ms, token.expires_ms, token.max_ms) == (NOW, NOW + DAY, NOW + 7 * DAY)
    assert len(token.token_id) == 22
    assert create(world).token_id != token.token_id


@pytest.mark.parametrize(
    "asked,lives", [(-1, 7 * DAY), (0, 7 * DAY), (HOUR, HOUR), (8 * DAY, 7 * DAY), (LONG_MAX, 7 * DAY)]
)
def test_a_shorter_life_can_be_asked_for_but_no_longer_one(world: ControllerWorld, asked: int, lives: int) -> None:
    token = create(world, lifetime_ms=asked)
    assert token.max_ms == NOW + lives
    assert token.expires_ms == NOW + min(lives, DAY)


def test_the_longest_settings_do_not_overflow() -> None:
    world = ControllerWorld(
        delegation_token_secret_key="secret",
        delegation_token_max_lifetime_ms=LONG_MAX,
        delegation_token_expiry_time_ms=LONG_MAX,
    )
    token = create(world)
    assert token.expires_ms == token.max_ms == LONG_MAX


@pytest.mark.parametrize(
    "wanted,code",
    [
        ({"owner": Principal("Group", "alice")}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"renewers": [CAROL, Principal("Group", "admins")]}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"renewers": [CAROL] * 1001}, ErrorCode.INVALID_REQUEST),
        ({"owner": Principal("User", "x" * 1025)}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_wrong_owner_or_renewer_is_refused(
    world: ControllerWorld, wanted: dict[str, object], code: ErrorCode
) -> None:
    with pytest.raises(BrokerError) as error:
        create(world, **wanted)
    assert code_of(error) is code


def test_without_a_secret_key_or_in_an_old_cluster_there_are_no_tokens() -> None:
    for settings in (BrokerSettings(), BrokerSettings(delegation_token_secret_key="")):
        world = ControllerWorld()
        world.settings = settings
        with pytest.raises(BrokerError) as error:
            create(world)
        assert code_of(error) is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    world = ControllerWorld(delegation_token_secret_key="secret")
    world.image = MetadataImage(cluster_id="c", features={"metadata.version": 13})
    with pytest.raises(BrokerError) as error:
        create(world)
    assert code_of(error) is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("requester", [ALICE, CAROL])
@pytest.mark.parametrize(
    "period,expires", [(HOUR, HOUR + 1000), (-1, DAY + 1000), (0, DAY + 1000), (2 * DAY, DAY + 1000)]
)
def test_owner_and_renewers_renew_for_a_period_of_at_most_a_day(
    world: ControllerWorld, requester: Principal, period: int, expires: int
) -> None:
    token = create(world)
    plan = plan_renewal(token, requester, period, world.settings, now_ms=NOW + 1000)
    world.apply(plan.records)
    assert plan.expires_ms == NOW + expires
    record = world.image.carried["token", token.token_id]
    assert isinstance(record, DelegationTokenRecord)
    assert record.expiration_timestamp == NOW + expires
    assert (record.issue_timestamp, record.max_timestamp) == (NOW, NOW + 7 * DAY)


def test_no_renewal_goes_beyond_the_life_of_a_token(world: ControllerWorld) -> None:
    token = create(world, lifetime_ms=2 * HOUR)
    assert plan_renewal(token, ALICE, -1, world.settings, now_ms=NOW + HOUR).expires_ms == NOW + 2 * HOUR


def test_an_unknown_token_an_expired_one_and_that_of_another_cannot_be_renewed(world: ControllerWorld) -> None:
    token = create(world)
    for found, requester, now, code in (
        (None, ALICE, NOW, ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
        (token, ALICE, NOW + DAY, ErrorCode.DELEGATION_TOKEN_EXPIRED),
        (token, BOB, NOW + DAY, ErrorCode.DELEGATION_TOKEN_EXPIRED),
        (token, BOB, NOW, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (token, DORA, NOW, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
    ):
        with pytest.raises(BrokerError) as error:
            plan_renewal(found, requester, HOUR, world.settings, now_ms=now)
        assert code_of(error) is code


def test_a_token_can_be_made_to_expire_at_any_time_within_its_life(world: ControllerWorld) -> None:
    token = create(world)
    for period, expires in ((0, NOW), (HOUR, NOW + HOUR), (3 * DAY, NOW + 3 * DAY), (LONG_MAX, NOW + 7 * DAY)):
        assert plan_expiry(token, CAROL, period, now_ms=NOW).expires_ms == expires


def test_a_negative_period_removes_a_token_even_if_it_has_expired(world: ControllerWorld) -> None:
    token = create(world)
    for now in (NOW, NOW + 30 * DAY):
        plan = plan_expiry(token, ALICE, -1, now_ms=now)
        assert plan == ([RemoveDelegationTokenRecord(token.token_id)], -1)


def test_an_unknown_token_an_expired_one_and_that_of_another_cannot_be_made_to_expire(world: ControllerWorld) -> None:
    token = create(world)
    for found, requester, now, period, code in (
        (None, ALICE, NOW, -1, ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
        (token, BOB, NOW, -1, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (token, BOB, NOW + DAY, 0, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (token, ALICE, NOW + DAY, 0, ErrorCode.DELEGATION_TOKEN_EXPIRED),
    ):
        with pytest.raises(BrokerError) as error:
            plan_expiry(found, requester, period, now_ms=now)
        assert code_of(error) is code


def test_expired_tokens_are_removed_in_batches_of_limited_size(world: ControllerWorld) -> None:
    tokens = TokenStore(lambda: world.image.carried, secret_key="secret", clock=ManualClock(NOW))
    for _ in range(REMOVALS_MAX + 1):
        create(world, lifetime_ms=HOUR)
    kept = create(world)
    assert plan_removals(tokens, now_ms=NOW + HOUR - 1) == []
    sizes = []
    while records := plan_removals(tokens, now_ms=NOW + HOUR):
        world.apply(records)
        sizes.append(len(records))
    assert sizes == [REMOVALS_MAX, 1]
    assert list(tokens) == [kept]
