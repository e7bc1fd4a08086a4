"""Which limit holds for a client: the most specific entity that has the key, compared with Kafka's table."""

from hypothesis import given
from hypothesis import strategies as st

from core_broker.protocol.fields import Message
from core_broker.protocol.stored.metadata import ClientQuotaRecord, EntityData
from core_broker.security.quota_limits import CLIENT_ID, USER, Limit, QuotaKey, QuotaLimits, canonical_address

KEY = QuotaKey.PRODUCER_BYTE_RATE
NAMES = ("a", "b", "")
"""Few, so that they meet; clients without an id have the empty one."""


def record(value: float, key: str = KEY, **entity: str | None) -> ClientQuotaRecord:
    """A quota; `client_id=None` is the default of client ids."""
    parts = [EntityData(kind.replace("_", "-"), name) for kind, name in entity.items()]
    return ClientQuotaRecord(entity=parts, key=key, value=value)


def naive(quotas: dict[tuple[tuple[str, str | None], ...], float], user: str, client: str) -> Limit | None:
    """The table of precedence, row by row."""
    table: list[tuple[list[tuple[str, str | None]], str | None, str | None]] = [
        ([(USER, user), (CLIENT_ID, client)], user, client),
        ([(USER, user), (CLIENT_ID, None)], user, client),
        ([(USER, user)], user, None),
        ([(USER, None), (CLIENT_ID, client)], user, client),
        ([(USER, None), (CLIENT_ID, None)], user, client),
        ([(USER, None)], user, None),
        ([(CLIENT_ID, client)], None, client),
        ([(CLIENT_ID, None)], None, client),
    ]
    for entity, shared_user, shared_client in table:
        if (value := quotas.get(tuple(entity))) is not None:
            return Limit(value, shared_user, shared_client)
    return None


PARTS = st.sampled_from([None, "a", "b"])
ENTITIES = st.one_of(
    st.tuples(st.tuples(st.just(USER), PARTS)),
    st.tuples(st.tuples(st.just(CLIENT_ID), PARTS)),
    st.tuples(st.tuples(st.just(USER), PARTS), st.tuples(st.just(CLIENT_ID), PARTS)),
)


@given(st.dictionaries(ENTITIES, st.integers(1, 1000).map(float), max_size=12))
def test_the_most_specific_entity_wins(quotas: dict[tuple[tuple[str, str | None], ...], float]) -> None:
    limits = QuotaLimits(
        ClientQuotaRecord(entity=[EntityData(*part) for part in entity], key=KEY, value=value)
        for entity, value in quotas.items()
    )
    for user in NAMES:
        for client in NAMES:
            assert limits.find(KEY, user, client) == naive(quotas, user, client)


def test_each_key_is_looked_up_on_its_own() -> None:
    limits = QuotaLimits([record(1, user="a", client_id="c"), record(2, QuotaKey.CONSUMER_BYTE_RATE, client_id=None)])
    assert limits.find(KEY, "a", "c") == Limit(1, "a", "c")
    assert limits.find(QuotaKey.CONSUMER_BYTE_RATE, "a", "c") == Limit(2, None, "c")
    assert limits.find(QuotaKey.REQUEST_PERCENTAGE, "a", "c") is None


def test_an_address_goes_before_the_default_of_addresses() -> None:
    key = QuotaKey.CONNECTION_CREATION_RATE
    limits = QuotaLimits([record(3, key, ip="10.0.0.7"), record(9, key, ip=None)])
    assert limits.has_addresses
    assert not limits.has_clients
    assert limits.find_address("10.0.0.7") == 3
    assert limits.find_address("::ffff:10.0.0.7") == 3
    assert limits.find_address("10.0.0.8") == 9
    assert QuotaLimits([record(3, key, ip="10.0.0.7")]).find_address("10.0.0.8") is None


def test_addresses_are_compared_and_not_their_texts() -> None:
    limits = QuotaLimits([record(3, QuotaKey.CONNECTION_CREATION_RATE, ip="2001:DB8:0::1")])
    assert limits.find_address("2001:db8::1") == 3
    assert canonical_address("fe80::1%eth0") == "fe80::1"
    assert canonical_address("not an address") == "not an address"


def test_the_quotas_among_the_carried_records_are_taken() -> None:
    carried: dict[tuple[object, ...], Message] = {
        ("quota", 1): record(5, user="a"),
        ("acl", b"1"): EntityData("x", "y"),
    }
    limits = QuotaLimits.of_metadata(carried)
    assert limits.find(KEY, "a", "") == Limit(5, "a", None)
