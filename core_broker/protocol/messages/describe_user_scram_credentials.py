"""DescribeUserScramCredentials (key 50)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince


class UserName(Message):
    """Part of `DescribeUserScramCredentialsRequest`."""

    name: str = ""


class DescribeUserScramCredentialsRequest(Message):
    """Request of DescribeUserScramCredentials (key 50)."""

    API_KEY = 50
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    users: Annotated[list[UserName] | None, NullableSince()] = []


class CredentialInfo(Message):
    """Part of `DescribeUserScramCredentialsResponse`."""

    mechanism: Int8 = 0
    iterations: Int32 = 0


class DescribeUserScramCredentialsResult(Message):
    """Part of `DescribeUserScramCredentialsResponse`."""

    user: str = ""
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    credential_infos: list[CredentialInfo] = []


class DescribeUserScramCredentialsResponse(Message):
    """Response of DescribeUserScramCredentials (key 50)."""

    API_KEY = 50
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    results: list[DescribeUserScramCredentialsResult] = []
