import pytest

from core_broker.client.acls import Operation, Permission, ResourceType, ServiceAcl, ServiceResource
from core_broker.web_access.rules import WHOLE as SERVICE_WHOLE
from core_broker.web_access.rules import ResourceType as ServiceResourceType
from deploy.views.acls import (
    OPERATIONS,
    WHOLE,
    AnyAcl,
    Kind,
    Resource,
    affects,
    consumer_rules,
    lines,
    newly_guarded,
    parse_operations,
    parse_principal,
    producer_rules,
    resource_of,
    rules,
    selects,
    sentence,
)

ORDERS = Resource(kind=ResourceType.TOPIC, name="orders")
SHOP = Resource(kind=ResourceType.TOPIC, name="shop-", is_prefixed=True)
BILLING = Resource(kind=ResourceType.GROUP, name="billing")


def allowing(
    operation: Operation, *resources: Resource, principal: str = "User:alice", host: str = "*"
) -> list[AnyAcl]:
    return rules(principal, [operation], resources, host=host, permission=Permission.ALLOW)


def test_principals_are_users_unless_they_are_something_else() -> None:
    assert parse_principal("alice") == "User:alice"
    assert parse_principal("User:CN=shop,O=Acme") == "User:CN=shop,O=Acme"
    for wrong in ("", ":", "User:", ":alice"):
        with pytest.raises(ValueError, match="must look like User:alice"):
            parse_principal(wrong)


def test_operations_are_words_in_any_case() -> None:
    assert parse_operations("read, Describe-Configs,alter_configs,read") == (
        Operation.READ,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    )
    for wrong in ("", "fly", "any", "unknown", "read,"):
        with pytest.raises(ValueError, match="is not an operation; there are all, read"):
            parse_operations(wrong)


@pytest.mark.parametrize("kind", OPERATIONS)
def test_rules_that_are_never_looked_up_are_refused(kind: Kind) -> None:
    resource = Resource(kind=kind, name="x")
    for operation in list(Operation)[2:]:
        if operation is Operation.ALL or operation in OPERATIONS[kind]:
            assert len(allowing(operation, resource)) == 1
        else:
            with pytest.raises(ValueError, match="it has all, "):
                allowing(operation, resource)


def test_a_producer_and_a_consumer_get_all_that_they_need() -> None:
    shop = Resource(kind=ResourceType.TRANSACTIONAL_ID, name="shop")
    made = producer_rules("User:a", [ORDERS, shop], host="*", permission=Permission.ALLOW)
    assert [sentence(acl) for acl in made] == [
        "User:a may write topic orders",
        "User:a may describe topic orders",
        "User:a may create topic orders",
        "User:a may write transactional id shop",
        "User:a may describe transactional id shop",
    ]
    made = consumer_rules("User:a", [SHOP, BILLING], host="*", permission=Permission.ALLOW)
    assert [sentence(acl) for acl in made] == [
        "User:a may read topics shop-*",
        "User:a may describe topics shop-*",
        "User:a may read group billing",
    ]
    with pytest.raises(ValueError, match="--consumer needs --topic and --group"):
        consumer_rules("User:a", [ORDERS], host="*", permission=Permission.ALLOW)
    with pytest.raises(ValueError, match="--producer needs --topic"):
        producer_rules("User:a", [shop], host="*", permission=Permission.ALLOW)


def test_rules_read_as_sentences() -> None:
    (everything,) = rules(
        "User:*",
        [Operation.ALL],
        [Resource(kind=ResourceType.TOPIC, name="*")],
        host="10.0.0.7",
        permission=Permission.DENY,
    )
    assert sentence(everything) == "everyone may not do everything with every topic from 10.0.0.7"


def test_operations_of_one_kind_are_in_one_row() -> None:
    found = [*allowing(Operation.READ, ORDERS), *allowing(Operation.WRITE, ORDERS), *allowing(Operation.READ, SHOP)]
    assert list(lines(found)) == [
        ("topic orders", "User:alice", "allow", "read, write", "*"),
        ("topics shop-*", "User:alice", "allow", "read", "*"),
    ]


def test_the_first_rule_of_a_resource_is_noticed() -> None:
    new = allowing(Operation.READ, ORDERS, SHOP)
    assert newly_guarded(new, []) == ["topic orders", "topics shop-*"]
    assert newly_guarded(new, allowing(Operation.WRITE, ORDERS, principal="User:bob")) == ["topics shop-*"]
    everywhere = allowing(Operation.READ, Resource(kind=ResourceType.TOPIC, name="*"))
    assert newly_guarded(new, everywhere) == []
    prefix = allowing(Operation.READ, Resource(kind=ResourceType.TOPIC, name="or", is_prefixed=True))
    assert newly_guarded(new, prefix) == ["topics shop-*"]
    assert newly_guarded(allowing(Operation.READ, BILLING), everywhere) == ["group billing"]


def test_rules_are_chosen_by_all_that_is_named() -> None:
    (acl,) = allowing(Operation.READ, SHOP, host="10.0.0.7")
    nothing = {"principal": None, "operations": (), "resources": (), "host": None, "permission": None}
    assert selects(acl, **nothing)  # type: ignore[arg-type] # the values of a plain dict
    for name, right, wrong in (
        ("principal", "User:alice", "User:bob"),
        ("operations", (Operation.READ,), (Operation.WRITE,)),
        ("resources", (SHOP,), (Resource(kind=ResourceType.TOPIC, name="shop-"),)),
        ("host", "10.0.0.7", "*"),
        ("permission", Permission.ALLOW, Permission.DENY),
    ):
        assert selects(acl, **{**nothing, name: right})  # type: ignore[arg-type] # the same
        assert not selects(acl, **{**nothing, name: wrong})  # type: ignore[arg-type] # the same


SUBJECTS = Resource(kind=ServiceResource.SUBJECT, name="orders-", is_prefixed=True)


def test_a_rule_of_the_registry_reads_like_any_other() -> None:
    (rule,) = allowing(Operation.WRITE, SUBJECTS)
    assert isinstance(rule, ServiceAcl)
    assert sentence(rule) == "User:alice may write subjects orders-*"
    whole = allowing(Operation.ALTER, Resource(kind=ServiceResource.REGISTRY, name="registry"))
    assert sentence(whole[0]) == "User:alice may alter the whole registry"


def test_rules_of_prefixes_and_of_all_names_apply_to_a_subject() -> None:
    about = Resource(kind=ServiceResource.SUBJECT, name="orders-value")
    named = [about, SUBJECTS, Resource(kind=ServiceResource.SUBJECT, name="*")]
    others = [
        Resource(kind=ServiceResource.SUBJECT, name="orders-"),
        Resource(kind=ServiceResource.SUBJECT, name="orders-value-2", is_prefixed=True),
        Resource(kind=ServiceResource.CONNECTOR, name="orders-value"),
    ]
    found = [acl for acl in allowing(Operation.READ, *named, *others) if isinstance(acl, ServiceAcl)]
    assert [resource_of(acl) for acl in found if affects(acl, about)] == named
    assert [resource_of(acl) for acl in found if affects(acl, SUBJECTS)] == [SUBJECTS]


def test_the_words_for_resources_are_those_of_the_services() -> None:
    assert [*ServiceResource] == [*ServiceResourceType]
    assert {str(kind): name for kind, name in WHOLE.items()} == {
        str(kind): name for kind, name in SERVICE_WHOLE.items()
    }
