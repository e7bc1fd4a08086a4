"""SCRAM credentials (RFC 5802, RFC 7677): what a server keeps instead of a password."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final

import msgspec
from typing_extensions import override

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
"""As in Kafka. Deriving a key with the maximum takes a processor several milliseconds."""
_SALT_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramMechanism(msgspec.Struct, frozen=True):
    """One SCRAM mechanism: its name, its number in the APIs of credentials, and its hash function."""

    name: str
    number: int
    hash_name: str

    @property
    def hash_bytes(self) -> int:
        """The length of a hash, which is also that of keys and salted passwords."""
        return hashlib.new(self.hash_name).digest_size

    def hash(self, data: bytes) -> bytes:
        """H() of RFC 5802."""
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """HMAC() of RFC 5802."""
        return hmac.digest(key, data, self.hash_name)

    def salted_password(self, password: bytes, salt: bytes, iterations: int) -> bytes:
        """Hi() of RFC 5802. Takes milliseconds: call it in a thread; it releases the interpreter's lock."""
        return hashlib.pbkdf2_hmac(self.hash_name, password, salt, iterations)


SCRAM_SHA_256: Final = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SCRAM_SHA_512: Final = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
BY_NAME: Final[Mapping[str, ScramMechanism]] = {found.name: found for found in (SCRAM_SHA_256, SCRAM_SHA_512)}
BY_NUMBER: Final[Mapping[int, ScramMechanism]] = {found.number: found for found in BY_NAME.values()}


class ScramCredential(msgspec.Struct, frozen=True):
    """What the server knows of a password. It can check a proof with that; it cannot log in with it elsewhere."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @override
    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


def make_credential(
    password: str, mechanism: str, iterations: int = ITERATIONS_MIN, salt: bytes = b""
) -> ScramCredential:
    """The credential of a password, whose salt is random if none is given. Takes milliseconds: call it in a thread.

    As in Kafka the password is used as it is, without SASLprep.
    """
    scram = BY_NAME[mechanism]
    salt = salt or new_salt()
    return from_salted_password(scram.salted_password(password.encode(), salt, iterations), mechanism, iterations, salt)


def new_salt() -> bytes:
    """A random salt, in the form of those that Kafka's tools create."""
    return salt_text(secrets.token_bytes(_SALT_BITS // 8 + 1))


def salt_text(seed: bytes) -> bytes:
    """130 bits of a seed in base 36."""
    number = int.from_bytes(seed) & ((1 << _SALT_BITS) - 1)
    digits = []
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)).encode()


def from_salted_password(salted: bytes, mechanism: str, iterations: int, salt: bytes) -> ScramCredential:
    """The credential of a password that was salted by the client, as AlterUserScramCredentials sends it."""
    scram = BY_NAME[mechanism]
    return ScramCredential(
        salt=salt,
        stored_key=scram.hash(scram.hmac(salted, b"Client Key")),
        server_key=scram.hmac(salted, b"Server Key"),
        iterations=iterations,
    )


def token_password(token_hmac: bytes) -> str:
    """The password of a delegation token: its HMAC in base64."""
    return base64.b64encode(token_hmac).decode()
