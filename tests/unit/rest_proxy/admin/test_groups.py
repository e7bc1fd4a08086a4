import pytest

from core_broker.client.models import Broker, Group, Member
from rest_proxy.admin import groups
from rest_proxy.errors import ProxyError
from rest_proxy.models.v3.resources import Links

LINKS = Links(base="http://proxy", cluster_id="c-1")
MEMBER = Member(member_id="m/1", client_id="one", host="/h", instance_id="", partitions=(("t", 0), ("t", 1)))


def group(state: str = "stable", kind: str = "classic", coordinator: Broker | None = None) -> Group:
    return Group(group_id="g", state=state, kind=kind, assignor="range", coordinator=coordinator, members=(MEMBER,))


@pytest.mark.parametrize(
    ("state", "result"),
    [
        ("unknown", "UNKNOWN"),
        ("preparing rebalancing", "PREPARING_REBALANCE"),
        ("completing rebalancing", "COMPLETING_REBALANCE"),
        ("stable", "STABLE"),
        ("dead", "DEAD"),
        ("empty", "EMPTY"),
        ("", "UNKNOWN"),
    ],
)
def test_states_have_confluents_names(state: str, result: str) -> None:
    assert groups.group_data(group(state), LINKS).state == result


@pytest.mark.parametrize(("kind", "result"), [("classic", "CLASSIC"), ("consumer", "CONSUMER"), ("", "UNKNOWN")])
def test_types_have_confluents_names(kind: str, result: str) -> None:
    assert groups.group_data(group(kind=kind), LINKS).type == result


def test_coordinator_is_one_of_the_brokers() -> None:
    known = groups.group_data(group(coordinator=Broker(id=3, host="h", port=1)), LINKS)
    assert known.coordinator.related == "http://proxy/v3/clusters/c-1/brokers/3"
    assert groups.group_data(group(), LINKS).coordinator.related == "http://proxy/v3/clusters/c-1/brokers/-1"


def test_names_in_addresses_are_escaped_and_in_resource_names_they_are_not() -> None:
    metadata = groups.consumer_data(group(), MEMBER, LINKS).metadata
    assert metadata.self == "http://proxy/v3/clusters/c-1/consumer-groups/g/consumers/m%2F1"
    assert metadata.resource_name == "crn:///kafka=c-1/consumer-group=g/consumer=m/1"


def test_member_is_found_by_its_id() -> None:
    assert groups.member(group(), "m/1") is MEMBER
    with pytest.raises(ProxyError, match="Consumer other does not exist") as missing:
        groups.member(group(), "other")
    assert missing.value.code == 404


def test_member_reads_what_it_was_assigned_and_nothing_else() -> None:
    groups.check_assigned(MEMBER, "t", 1)
    for topic, partition in [("t", 2), ("u", 0)]:
        with pytest.raises(ProxyError) as missing:
            groups.check_assigned(MEMBER, topic, partition)
        assert missing.value.code == 404
