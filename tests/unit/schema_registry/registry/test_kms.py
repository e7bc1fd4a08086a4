import base64

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from schema_registry.models_deks import DekAlgorithm
from schema_registry.registry.kms import KmsError, LocalKms, new_key

# What other clients of local-kms wrapped with the secret "mysecret": a key for AES256_GCM and one for AES256_SIV.
WRAPPED_GCM = "07V2ndh02DA73p+dTybwZFm7DKQSZN1tEwQh+FoX1DZLk4Yj2LLu4omYjp/84tAg3BYlkfGSz+zZacJHIE4="
WRAPPED_SIV = (
    "YSx3DTlAHrmpoDChquJMifmPntBzxgRVdMzgYL82rgWBKn7aUSnG+WIu9ozBNS3y2vXd++mBtK07w4/W/G6w0da39X9hfOVZsGnkSvry"
    "/QRht84V8yz3dqKxGMOK5A=="
)
# "hello world", encrypted with the first of them.
FIELD = "zgy/jFNMV/eFilaHrMyeBgdaVzrR0udGeotW8cA/Jal7ukr+M/yz"


def test_unwraps_a_key_that_another_client_wrapped_and_it_decrypts_a_field() -> None:
    key = LocalKms("mysecret")("mykey", {}).unwrap(base64.b64decode(WRAPPED_GCM))

    assert key[:2] == b"\x1a\x20"
    field = base64.b64decode(FIELD)
    assert AESGCM(key[2:]).decrypt(field[:12], field[12:], b"") == b"hello world"


@pytest.mark.parametrize(
    ("algorithm", "beginning", "size"),
    [
        (DekAlgorithm.AES128_GCM, b"\x1a\x10", 18),
        (DekAlgorithm.AES256_GCM, b"\x1a\x20", 34),
        (DekAlgorithm.AES256_SIV, b"\x12\x40", 66),
    ],
)
def test_new_keys_have_the_form_that_tink_reads(algorithm: DekAlgorithm, beginning: bytes, size: int) -> None:
    key = new_key(algorithm)

    assert key.startswith(beginning)
    assert len(key) == size
    assert key != new_key(algorithm)


def test_a_key_for_aes_siv_has_the_same_form_as_other_clients_keys() -> None:
    key = LocalKms("mysecret")("mykey", {}).unwrap(base64.b64decode(WRAPPED_SIV))

    assert key[:2] == new_key(DekAlgorithm.AES256_SIV)[:2]
    assert len(key) == len(new_key(DekAlgorithm.AES256_SIV))


def test_what_is_wrapped_is_unwrapped_and_never_looks_the_same_twice() -> None:
    wrapper = LocalKms()("mykey", {"secret": "s3cret"})

    assert wrapper.unwrap(wrapper.wrap(b"a key")) == b"a key"
    assert wrapper.wrap(b"a key") != wrapper.wrap(b"a key")


def test_the_keys_own_secret_goes_before_the_registrys() -> None:
    wrapped = LocalKms()("mykey", {"secret": "own"}).wrap(b"a key")

    assert LocalKms("registry")("mykey", {"secret": "own"}).unwrap(wrapped) == b"a key"
    with pytest.raises(KmsError, match="another secret"):
        LocalKms("registry")("mykey", {}).unwrap(wrapped)


def test_without_a_secret_there_is_no_key() -> None:
    with pytest.raises(KmsError, match="cannot load secret"):
        LocalKms()("mykey", {})


def test_too_few_bytes_are_refused() -> None:
    with pytest.raises(KmsError, match="too short"):
        LocalKms("mysecret")("mykey", {}).unwrap(b"short")
