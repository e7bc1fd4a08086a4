import pytest

from rest_proxy.consume.instances.config import InstanceConfig, check_name, parse
from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.models.v2.consumers import V2CreateInstance
from rest_proxy.settings import ProxySettings


def parse_config(**asked: object) -> InstanceConfig:
    return parse(V2CreateInstance.model_validate(asked), ProxySettings())


def test_defaults_are_confluents_save_that_polls_do_not_wait_in_vain() -> None:
    config = parse_config()
    assert config == InstanceConfig(
        format=Format.BINARY,
        auto_offset_reset="latest",
        auto_commit_enable=True,
        fetch_min_bytes=1,
        request_timeout_ms=1000,
    )


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("format", "AVRO", "format", Format.AVRO),
        ("auto.offset.reset", "Earliest", "auto_offset_reset", "earliest"),
        ("auto.offset.reset", "none", "auto_offset_reset", "error"),
        ("auto.commit.enable", "false", "auto_commit_enable", False),
        ("auto.commit.enable", False, "auto_commit_enable", False),
        ("fetch.min.bytes", "100", "fetch_min_bytes", 100),
        ("fetch.min.bytes", -1, "fetch_min_bytes", -1),
        ("responseMinBytes", 5, "fetch_min_bytes", 5),
        ("consumer.request.timeout.ms", "0", "request_timeout_ms", 0),
        ("requestWaitMs", 5, "request_timeout_ms", 5),
        ("isolation.level", "read_uncommitted", "properties", {"isolation.level": "read_uncommitted"}),
        ("session.timeout.ms", 6000, "properties", {"session.timeout.ms": "6000"}),
        ("group.id", "other", "properties", {}),
    ],
)
def test_values_are_read_as_json_or_as_text(key: str, value: object, field: str, expected: object) -> None:
    assert getattr(parse_config(**{key: value}), field) == expected


@pytest.mark.parametrize(
    ("key", "value", "status", "code"),
    [
        ("format", "string", 422, 422),
        ("auto.offset.reset", "smallest", 422, 42204),
        ("auto.commit.enable", 1, 422, 42204),
        ("fetch.min.bytes", -2, 422, 40001),
        ("fetch.min.bytes", 10_000_001, 422, 40001),
        ("fetch.min.bytes", True, 422, 42204),
        ("fetch.min.bytes", "9" * 5000, 422, 42204),
        ("consumer.request.timeout.ms", 2**31, 422, 42204),
        ("client.rack", "a\x00", 422, 42204),
    ],
)
def test_value_that_is_wrong_is_reported_with_its_key(key: str, value: object, status: int, code: int) -> None:
    with pytest.raises(ProxyError) as caught:
        parse_config(**{key: value})
    assert (caught.value.status, caught.value.code) == (status, code)
    assert key in caught.value.message
    assert len(caught.value.message) < 300


def test_reset_of_the_proxys_own_properties_is_the_default() -> None:
    settings = ProxySettings.parse({"consumer.auto.offset.reset": "earliest"})
    assert parse(V2CreateInstance(), settings).auto_offset_reset == "earliest"


@pytest.mark.parametrize("name", ["", "x" * 256, "a\nb", "a\x7f", " ", " a", "a ", ".", ".."])
def test_a_name_that_would_break_logs_or_the_client_library_is_refused(name: str) -> None:
    with pytest.raises(ProxyError):
        check_name("name", name)
