"""The client side of SCRAM (RFC 5802), which proves knowledge of a password without sending it."""

import base64
import hashlib
import hmac
import secrets

ITERATIONS = range(1, 1_000_001)
"""More would keep a processor busy for seconds: a server can name any number (CVE-2026-10143)."""


class ScramError(ValueError):
    """The server's messages are not those of a server that knows the password."""


class Scram:
    """One exchange: send `first()`, pass the response to `proof()`, and the response to that to `check_end()`."""

    def __init__(
        self,
        hash_name: str,
        user: str,
        password: str,
        *,
        nonce: str | None = None,
        iterations: range = ITERATIONS,
        extensions: str = "",
    ) -> None:
        self._hash = hash_name
        self._iterations = iterations
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}{extensions}"
        self._server_signature = b""

    def first(self) -> bytes:
        """The first message."""
        return f"n,,{self._bare}".encode()

    def proof(self, response: bytes) -> bytes:
        """The second message, computed from the server's salt."""
        try:
            fields = _fields(response)
            nonce, salt, iterations = fields["r"], base64.b64decode(fields["s"], validate=True), int(fields["i"])
        except (KeyError, ValueError) as error:
            raise ScramError("the broker's response is not valid SCRAM") from error
        if not self._accepts(nonce) or iterations not in self._iterations:
            raise ScramError("the broker's SCRAM response has a wrong nonce or iteration count")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._bare},{response.decode()},{without_proof}".encode()
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check_end(self, response: bytes) -> None:
        """Raise unless the server has proved that it knows the password, too."""
        try:
            signature = base64.b64decode(_fields(response).get("v", ""))
        except ValueError as error:
            raise ScramError("the broker's response is not valid SCRAM") from error
        if not hmac.compare_digest(signature, self._server_signature):
            raise ScramError("the broker could not prove that it knows the password")

    def _accepts(self, nonce: str) -> bool:
        """Whether the server added something to the nonce of this exchange."""
        return nonce.startswith(self._nonce) and len(nonce) > len(self._nonce)

    def _hmac(self, key: bytes, text: bytes) -> bytes:
        return hmac.digest(key, text, self._hash)


def _fields(message: bytes) -> dict[str, str]:
    return dict(part.split("=", 1) for part in message.decode().split(",") if "=" in part)
