import pytest

from rest_proxy.models.v3.resources import CollectionMetadata, Links, Relationship, ResourceMetadata

LINKS = Links(base="http://proxy:8082", cluster_id="c-1")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((), "http://proxy:8082/v3/clusters/c-1"),
        (("topics", "orders"), "http://proxy:8082/v3/clusters/c-1/topics/orders"),
        (("topics", "-", "partitions", 3), "http://proxy:8082/v3/clusters/c-1/topics/-/partitions/3"),
        (("consumer-groups", "a/b c"), "http://proxy:8082/v3/clusters/c-1/consumer-groups/a%2Fb%20c"),
        (("consumer-groups", "ä?#"), "http://proxy:8082/v3/clusters/c-1/consumer-groups/%C3%A4%3F%23"),
    ],
)
def test_addresses_are_escaped(parts: tuple[str | int, ...], expected: str) -> None:
    assert LINKS.url(*parts) == expected
    assert LINKS.related(*parts) == Relationship(related=expected)
    assert LINKS.collection(*parts) == CollectionMetadata(self=expected, next=None)


def test_names_are_not_encoded() -> None:
    assert LINKS.name("topic", "orders", "partition", 3) == "crn:///kafka=c-1/topic=orders/partition=3"
    assert LINKS.name("consumer-group", "a b") == "crn:///kafka=c-1/consumer-group=a b"


def test_resource_has_both() -> None:
    assert LINKS.resource(("topics", "t"), ("topic", "t")) == ResourceMetadata(
        self="http://proxy:8082/v3/clusters/c-1/topics/t", resource_name="crn:///kafka=c-1/topic=t"
    )
