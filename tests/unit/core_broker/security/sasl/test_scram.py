"""The test vectors of RFC 5802's successor, RFC 7677, and what is shown of a credential."""

import base64
import re

import pytest

from core_broker.security.sasl.scram import (
    BY_NAME,
    BY_NUMBER,
    from_salted_password,
    make_credential,
    token_password,
)

_RFC_7677_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
_AUTH_MESSAGE = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)


def test_the_keys_of_rfc_7677() -> None:
    credential = make_credential("pencil", "SCRAM-SHA-256", 4096, _RFC_7677_SALT)
    mechanism = BY_NAME["SCRAM-SHA-256"]

    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = mechanism.hmac(credential.stored_key, _AUTH_MESSAGE)
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert mechanism.hash(client_key) == credential.stored_key
    server_signature = mechanism.hmac(credential.server_key, _AUTH_MESSAGE)
    assert base64.b64encode(server_signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", BY_NAME)
def test_a_salted_password_gives_the_same_credential(mechanism: str) -> None:
    salted = BY_NAME[mechanism].salted_password("grün".encode(), b"salt", 4096)
    assert from_salted_password(salted, mechanism, 4096, b"salt") == make_credential("grün", mechanism, 4096, b"salt")
    assert len(salted) == BY_NAME[mechanism].hash_bytes


def test_every_credential_has_a_salt_of_its_own() -> None:
    first, second = (make_credential("pencil", "SCRAM-SHA-512") for _ in range(2))
    assert first.salt != second.salt
    assert re.fullmatch(rb"[0-9a-z]{20,26}", first.salt)
    assert first.stored_key != second.stored_key


def test_the_numbers_of_mechanisms_are_those_of_the_protocol() -> None:
    assert {number: mechanism.name for number, mechanism in BY_NUMBER.items()} == {
        1: "SCRAM-SHA-256",
        2: "SCRAM-SHA-512",
    }


def test_a_credential_is_shown_without_its_keys() -> None:
    assert repr(make_credential("pencil", "SCRAM-SHA-256")) == "ScramCredential(iterations=4096)"


def test_the_password_of_a_token_is_its_hmac_in_base64() -> None:
    assert token_password(b"\xff\xfe") == "//4="
