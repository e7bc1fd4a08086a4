"""Subjects are written as Java writes them; the expected texts were printed by X500Principal.getName of Java 17."""

from contextlib import suppress

import pytest
from cryptography.x509 import Name, NameAttribute, ObjectIdentifier, RelativeDistinguishedName
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from core_broker.security.distinguished_names import format_subject

ACME = NameAttribute(NameOID.ORGANIZATION_NAME, "Acme")


def written(*attributes: NameAttribute[str]) -> str:
    return format_subject(Name(attributes).public_bytes())


@pytest.mark.parametrize(
    "oid,text",
    [
        (NameOID.COMMON_NAME, "CN=DE"),
        (NameOID.COUNTRY_NAME, "C=DE"),
        (NameOID.LOCALITY_NAME, "L=DE"),
        (NameOID.STATE_OR_PROVINCE_NAME, "ST=DE"),
        (NameOID.STREET_ADDRESS, "STREET=DE"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "OU=DE"),
        (NameOID.USER_ID, "UID=DE"),
        (NameOID.DOMAIN_COMPONENT, "DC=DE"),
        (NameOID.EMAIL_ADDRESS, "1.2.840.113549.1.9.1=#16024445"),
        (NameOID.SERIAL_NUMBER, "2.5.4.5=#13024445"),
        (NameOID.SURNAME, "2.5.4.4=#0c024445"),
        (ObjectIdentifier("2.999.3"), "2.999.3=#0c024445"),
        (ObjectIdentifier("1.2.840.99999.1"), "1.2.840.99999.1=#0c024445"),
    ],
)
def test_attributes_come_in_reverse_and_only_some_have_names(oid: ObjectIdentifier, text: str) -> None:
    assert written(ACME, NameAttribute(oid, "DE")) == f"{text},O=Acme"


@pytest.mark.parametrize(
    "value,text",
    [
        ("a,b", "a\\,b"),
        ("a=b", "a\\=b"),
        ("a+b", "a\\+b"),
        ("<x>", "\\<x\\>"),
        ("#x", "\\#x"),
        ('q"q', 'q\\"q'),
        ("b\\s", "b\\\\s"),
        ("semi;c", "semi\\;c"),
        (" lead", "\\ lead"),
        ("trail ", "trail\\ "),
        ("  ", "\\ \\ "),
        (" a  b ", "\\ a  b\\ "),
        ("\rx\r", "\\\rx\\\r"),
        ("nul\0x", "nul\\00x"),
        ("ä ö ü", "ä ö ü"),
        ("日本", "日本"),
    ],
)
def test_special_characters_are_escaped(value: str, text: str) -> None:
    assert written(NameAttribute(NameOID.COMMON_NAME, value), ACME) == f"O=Acme,CN={text}"


@pytest.mark.parametrize(
    "kind,text",
    [
        (_ASN1Type.PrintableString, "Kim"),
        (_ASN1Type.IA5String, "Kim"),
        (_ASN1Type.T61String, "Kim"),
        (_ASN1Type.BMPString, "\\00K\\00i\\00m"),
        (_ASN1Type.UniversalString, "#1c0c0000004b000000690000006d"),
    ],
)
def test_kinds_of_text(kind: _ASN1Type, text: str) -> None:
    assert written(NameAttribute(NameOID.COMMON_NAME, "Kim", kind)) == f"CN={text}"


def test_a_part_with_several_attributes() -> None:
    several = RelativeDistinguishedName([NameAttribute(NameOID.COMMON_NAME, "a"), NameAttribute(NameOID.USER_ID, "b")])
    assert format_subject(Name([several, RelativeDistinguishedName([ACME])]).public_bytes()) == "O=Acme,CN=a+UID=b"


def test_a_long_name_and_none() -> None:
    long = [NameAttribute(NameOID.COMMON_NAME, "x" * 60)] * 30
    assert written(*long) == ",".join([f"CN={'x' * 60}"] * 30)
    assert written() == ""


@given(st.binary(max_size=60))
def test_a_damaged_subject_is_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        format_subject(data)
