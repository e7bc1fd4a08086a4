"""Changes of client quotas are checked entity by entity, and described by what a filter wants."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.cluster.carried_records import CarriedKey
from core_broker.cluster.controller.client_quotas import describe_quotas, plan_quota_changes
from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.alter_client_quotas import EntityData, EntryData, OpData
from core_broker.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

EXACT, DEFAULT, SPECIFIED = range(3)
BYTES = "producer_byte_rate"


def entry(*operations: OpData, **entity: str | None) -> EntryData:
    """A change of one entity; `client_id=None` is the default of client ids."""
    return EntryData([EntityData(kind.replace("_", "-"), name) for kind, name in entity.items()], list(operations))


class Quotas:
    """The quotas of a cluster that is nothing but metadata."""

    def __init__(self) -> None:
        self.image = MetadataImage(cluster_id="c")

    @property
    def carried(self) -> dict[CarriedKey, Message]:
        return self.image.carried

    def alter(self, *entries: EntryData) -> list[int]:
        """Change quotas as far as that is possible; the error code of each entity."""
        plan = plan_quota_changes(entries, self.carried)
        draft = MetadataDraft(self.image)
        draft.replay(plan.records)
        self.image = draft.finish(offset=self.image.offset + len(plan.records), epoch=0)
        return [result.error_code for result in plan.results]

    def describe(self, *components: ComponentData, strict: bool = False) -> dict[str, dict[str, float]]:
        """The values of the entities that pass a filter, by the text of the entity."""
        found = describe_quotas(DescribeClientQuotasRequest(list(components), strict), self.carried)
        return {
            " ".join(f"{part.entity_type}={part.entity_name or '*'}" for part in entry.entity): {
                value.key: value.value for value in entry.values
            }
            for entry in found
        }


@pytest.fixture
def quotas() -> Quotas:
    return Quotas()


def test_quotas_are_set_changed_and_removed(quotas: Quotas) -> None:
    assert quotas.alter(entry(OpData(BYTES, 1000), OpData("request_percentage", 12.5), user="alice")) == [0]
    assert quotas.alter(entry(OpData(BYTES, 2000), OpData("request_percentage", remove=True), user="alice")) == [0]
    assert quotas.describe() == {"user=alice": {BYTES: 2000}}
    assert quotas.alter(entry(OpData(BYTES, remove=True), user="alice")) == [0]
    assert quotas.describe() == {}
    assert quotas.carried == {}


def test_a_change_to_the_same_value_writes_nothing(quotas: Quotas) -> None:
    quotas.alter(entry(OpData(BYTES, 1000), user="alice"))
    assert plan_quota_changes([entry(OpData(BYTES, 1000), user="alice")], quotas.carried).records == []


def test_what_is_not_there_may_be_removed_even_under_an_unknown_key(quotas: Quotas) -> None:
    assert quotas.alter(entry(OpData(BYTES, remove=True), OpData("no_such_key", remove=True), user="alice")) == [0]
    assert quotas.carried == {}


def test_the_order_of_the_parts_makes_no_difference(quotas: Quotas) -> None:
    assert quotas.alter(entry(OpData(BYTES, 1), user="alice", client_id="app")) == [0]
    assert quotas.alter(entry(OpData(BYTES, 2), client_id="app", user="alice")) == [0]
    assert list(quotas.describe().values()) == [{BYTES: 2}]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(entry(OpData(BYTES, 1)), id="no entity"),
        pytest.param(entry(OpData(BYTES, 1), group="g"), id="unknown type"),
        pytest.param(entry(OpData(BYTES, 1), user="a", ip="10.0.0.1"), id="ip with a user"),
        pytest.param(entry(OpData(BYTES, 1), user=""), id="empty name"),
        pytest.param(EntryData([EntityData("user", "a"), EntityData("user", "b")], [OpData(BYTES, 1)]), id="two users"),
        pytest.param(entry(OpData("connection_creation_rate", 1), ip="example.org"), id="not an address"),
        pytest.param(entry(OpData("connection_creation_rate", 1), user="a"), id="key of addresses"),
        pytest.param(entry(OpData(BYTES, 1), ip="10.0.0.1"), id="key of clients"),
        pytest.param(entry(OpData("no_such_key", 1), user="a"), id="unknown key"),
        pytest.param(entry(OpData(BYTES, 0), user="a"), id="zero"),
        pytest.param(entry(OpData("request_percentage", -1), user="a"), id="below zero"),
        pytest.param(entry(OpData(BYTES, 1.5), user="a"), id="half a byte"),
        pytest.param(entry(OpData("connection_creation_rate", 2**31), ip=None), id="beyond 32 bits"),
        pytest.param(entry(OpData(BYTES, 1), OpData(BYTES, 2), user="a"), id="key twice"),
        pytest.param(entry(OpData("request_percentage", float("nan")), user="a"), id="not a number"),
        pytest.param(entry(OpData("request_percentage", float("inf")), user="a"), id="infinite"),
    ],
)
def test_an_invalid_entity_does_not_stop_the_others(quotas: Quotas, wrong: EntryData) -> None:
    codes = quotas.alter(entry(OpData(BYTES, 1), user="good"), wrong, entry(OpData(BYTES, 2), user=None))
    assert codes == [0, ErrorCode.INVALID_REQUEST, 0]
    assert quotas.describe() == {"user=good": {BYTES: 1}, "user=*": {BYTES: 2}}


def test_one_invalid_key_keeps_the_whole_entity_as_it_was(quotas: Quotas) -> None:
    assert quotas.alter(entry(OpData(BYTES, 1), OpData("no_such_key", 1), user="alice")) == [ErrorCode.INVALID_REQUEST]
    assert quotas.describe() == {}


def test_an_entity_that_comes_twice_has_one_result(quotas: Quotas) -> None:
    codes = quotas.alter(entry(OpData(BYTES, 1), user="alice"), entry(OpData(BYTES, 2), user="alice"))
    assert codes == [ErrorCode.INVALID_REQUEST]
    assert quotas.describe() == {"user=alice": {BYTES: 1}}


def test_addresses_have_connection_rates(quotas: Quotas) -> None:
    rate = OpData("connection_creation_rate", 5)
    assert quotas.alter(entry(rate, ip="10.0.0.1"), entry(rate, ip="2001:db8::1"), entry(rate, ip=None)) == [0, 0, 0]
    assert set(quotas.describe()) == {"ip=10.0.0.1", "ip=2001:db8::1", "ip=*"}


ENTITIES = ("user=a", "user=*", "user=a client-id=c", "user=a client-id=*", "client-id=c", "client-id=*", "ip=10.0.0.1")


@pytest.fixture
def many(quotas: Quotas) -> Quotas:
    for text in ENTITIES:
        parts = dict(part.split("=") for part in text.split())
        key = "connection_creation_rate" if "ip" in parts else BYTES
        names: dict[str, str | None] = {
            kind.replace("-", "_"): None if name == "*" else name for kind, name in parts.items()
        }
        assert quotas.alter(entry(OpData(key, 1), **names)) == [0]
    return quotas


@pytest.mark.parametrize(
    "components,strict,expected",
    [
        ([], False, ENTITIES),
        ([], True, ()),
        ([ComponentData("user", EXACT, "a")], False, ("user=a", "user=a client-id=c", "user=a client-id=*")),
        ([ComponentData("user", EXACT, "a")], True, ("user=a",)),
        ([ComponentData("user", DEFAULT, None)], False, ("user=*",)),
        ([ComponentData("user", SPECIFIED, None)], True, ("user=a", "user=*")),
        ([ComponentData("client-id", SPECIFIED, None)], True, ("client-id=c", "client-id=*")),
        (
            [ComponentData("user", EXACT, "a"), ComponentData("client-id", DEFAULT, None)],
            False,
            ("user=a client-id=*",),
        ),
        ([ComponentData("user", EXACT, "nobody")], False, ()),
        ([ComponentData("ip", SPECIFIED, None)], True, ("ip=10.0.0.1",)),
    ],
)
def test_a_filter_chooses(many: Quotas, components: list[ComponentData], strict: bool, expected: Sequence[str]) -> None:
    assert set(many.describe(*components, strict=strict)) == set(expected)


@pytest.mark.parametrize(
    "components,code",
    [
        ([ComponentData("", SPECIFIED, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("group", SPECIFIED, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([ComponentData("user", EXACT, "a"), ComponentData("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", SPECIFIED, "a")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("ip", SPECIFIED, None), ComponentData("user", SPECIFIED, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_invalid_filter_is_refused(many: Quotas, components: list[ComponentData], code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as refused:
        many.describe(*components)
    assert refused.value.code is code


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-1, 3)), max_size=8))
def test_what_was_set_is_described(changes: list[tuple[str | None, int]]) -> None:
    quotas, expected = Quotas(), dict[str, dict[str, float]]()
    for user, value in changes:
        code = quotas.alter(entry(OpData(BYTES, value), user=user))
        assert code == [0 if value > 0 else ErrorCode.INVALID_REQUEST]
        if value > 0:
            expected[f"user={user or '*'}"] = {BYTES: value}
    assert quotas.describe() == expected
