import pytest

from core_broker.client.security import Quota
from deploy.views.quotas import describe_entity, describe_limits, parse_rate, view


@pytest.mark.parametrize(
    ("text", "rate"),
    [("10MB/s", 10_000_000), ("10 MB", 10_000_000), ("512KiB/s", 524_288), ("1.5kB", 1500), ("1048576", 1_048_576)],
)
def test_rates_have_units(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "-1MB", "0", "10 bananas", "10MB/h", "1e9", "iB", "5iB"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a rate: write 10MB/s"):
        parse_rate(text)


def test_quotas_read_as_people_say_them() -> None:
    quota = Quota(
        entity=(("user", "alice"), ("client-id", None)),
        limits={
            "producer_byte_rate": 10e6,
            "request_percentage": 12.5,
            "connection_creation_rate": 3.0,
            "new": 7.0,
        },
    )
    assert describe_entity(quota.entity) == "user alice, any client-id"
    assert list(describe_limits(quota.limits)) == [
        "producer rate 10 MB/s",
        "request percentage 12.5 %",
        "connection rate 3/s",
        "new 7",
    ]
    assert view(quota).entity == {"user": "alice", "client-id": None}
