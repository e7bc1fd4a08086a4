"""AlterUserScramCredentials (key 51)."""

from typing import Annotated

from typing_extensions import override

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, message


class ScramCredentialDeletion(Message):
    name: str = ""
    mechanism: Int8 = 0


class ScramCredentialUpsertion(Message):
    name: str = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: bytes = b""
    salted_password: bytes = b""

    @override
    def __repr__(self) -> str:
        """Without the salted password: it is as good as the password."""
        return f"ScramCredentialUpsertion(name={self.name!r}, mechanism={self.mechanism}, iterations={self.iterations})"


@message(51, versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Message):
    user: str = ""
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""


@message(51, versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
