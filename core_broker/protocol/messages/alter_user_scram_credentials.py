"""AlterUserScramCredentials (key 51)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince


class ScramCredentialDeletion(Message):
    """Part of `AlterUserScramCredentialsRequest`."""

    name: str = ""
    mechanism: Int8 = 0


class ScramCredentialUpsertion(Message):
    """Part of `AlterUserScramCredentialsRequest`."""

    name: str = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: bytes = b""
    salted_password: bytes = b""


class AlterUserScramCredentialsRequest(Message):
    """Request of AlterUserScramCredentials (key 51)."""

    API_KEY = 51
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Message):
    """Part of `AlterUserScramCredentialsResponse`."""

    user: str = ""
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""


class AlterUserScramCredentialsResponse(Message):
    """Response of AlterUserScramCredentials (key 51)."""

    API_KEY = 51
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
