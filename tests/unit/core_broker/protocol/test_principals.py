"""Principals and addresses have Kafka's bytes."""

import pytest

from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.principals import (
    Principal,
    decode_host,
    decode_principal,
    encode_host,
    encode_principal,
    parse_principal,
)

ALICE = bytes.fromhex("00 00 05 55 73 65 72 06 61 6c 69 63 65 00 00")
"""`User:alice`, written by Kafka 4.3.1."""


def test_a_principal_has_the_bytes_of_kafka() -> None:
    assert encode_principal(Principal("User", "alice")) == ALICE
    assert str(decode_principal(ALICE)) == "User:alice"


def test_the_name_of_a_principal_may_contain_a_colon() -> None:
    principal = parse_principal("User:CN=a:b,O=Käse")
    assert decode_principal(encode_principal(principal)) == principal


@pytest.mark.parametrize(
    "data", [None, b"", b"\0", b"\0\1" + ALICE[2:], ALICE[:-3], b"\0\0\xff\xff\xff\xff\x7f"], ids=repr
)
def test_an_unreadable_principal_is_refused(data: bytes | None) -> None:
    with pytest.raises(DecodeError):
        decode_principal(data)


@pytest.mark.parametrize(
    "host,data",
    [
        ("192.0.2.9", "c0000209"),
        ("::1", "00000000000000000000000000000001"),
        ("2001:db8::5", "20010db8000000000000000000000005"),
    ],
)
def test_an_address_is_its_4_or_16_bytes(host: str, data: str) -> None:
    assert encode_host(host) == bytes.fromhex(data)
    assert decode_host(bytes.fromhex(data)) == host


def test_the_address_of_an_ipv4_client_on_an_ipv6_socket_has_4_bytes() -> None:
    assert encode_host("::ffff:192.0.2.9") == bytes((192, 0, 2, 9))


def test_the_interface_of_a_link_local_address_is_left_out() -> None:
    assert decode_host(encode_host("fe80::1%eth0")) == "fe80::1"


@pytest.mark.parametrize("size", [0, 3, 5, 15, 17])
def test_an_address_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(DecodeError, match=f"cannot have {size} bytes"):
        decode_host(bytes(size))
