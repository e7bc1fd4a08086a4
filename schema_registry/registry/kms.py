"""Key management services, which wrap and unwrap shared keys for the registry.

Only `local-kms` is implemented, as in Confluent's clients: a key that is derived from a secret. Its format is Tink's: a
nonce of 12 bytes, the ciphertext and a tag of 16 bytes, without a prefix. The wrapped key is in Tink's form as well: a
Protobuf message with the key's bytes in one field.
"""

import secrets
from collections.abc import Mapping
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from schema_registry.models_deks import DekAlgorithm

LOCAL = "local-kms"
_NONCE_BYTES = 12
_TAG_BYTES = 16
_KEY_BYTES = {DekAlgorithm.AES128_GCM: 16, DekAlgorithm.AES256_GCM: 32, DekAlgorithm.AES256_SIV: 64}
_AES_GCM_KEY_FIELD = b"\x1a"
_AES_SIV_KEY_FIELD = b"\x12"


class KmsError(Exception):
    """The service could not wrap or unwrap a key; the message is sent to the client and contains no secret."""


class KmsAccessDenied(KmsError):
    """The service does not let the registry use the key."""


class Wrapper(Protocol):
    """One key of a service."""

    def wrap(self, key: bytes) -> bytes:
        """Encrypt a key; raises KmsError."""
        ...

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a key; raises KmsError."""
        ...


class KmsDriver(Protocol):
    """Opens the keys of one type of service."""

    def __call__(self, key_id: str, properties: Mapping[str, str], /) -> Wrapper:
        """The service's key with this id; raises KmsError."""
        ...


class LocalKms:
    """Keys derived from a secret: the one in the key's own properties, or the registry's."""

    def __init__(self, secret: str | None = None) -> None:
        self._secret = secret

    def __call__(self, _key_id: str, properties: Mapping[str, str]) -> Wrapper:
        """The key derived from the secret; the id is not used."""
        secret = properties.get("secret") or self._secret
        if not secret:
            raise KmsError("cannot load secret: local-kms needs the property 'secret', or the registry's own secret")
        return _DerivedKey(secret)


class _DerivedKey:
    def __init__(self, secret: str) -> None:
        self._cipher = AESGCM(HKDF(SHA256(), length=16, salt=None, info=b"").derive(secret.encode()))

    def wrap(self, key: bytes) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, key, None)

    def unwrap(self, wrapped: bytes) -> bytes:
        if len(wrapped) < _NONCE_BYTES + _TAG_BYTES:
            raise KmsError("ciphertext too short")
        try:
            return self._cipher.decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], None)
        except InvalidTag:
            raise KmsError("decryption failed: the key was wrapped with another secret") from None


def new_key(algorithm: DekAlgorithm) -> bytes:
    """A random data encryption key in Tink's form: version 0, which is left out, then the key's bytes."""
    key = secrets.token_bytes(_KEY_BYTES[algorithm])
    field = _AES_SIV_KEY_FIELD if algorithm is DekAlgorithm.AES256_SIV else _AES_GCM_KEY_FIELD
    return field + bytes([len(key)]) + key
