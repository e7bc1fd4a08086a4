"""DescribeUserScramCredentials (key 50)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, message


class UserName(Message):
    name: str = ""


@message(50, versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsRequest(Message):
    users: Annotated[list[UserName] | None, NullableSince()] = []


class CredentialInfo(Message):
    mechanism: Int8 = 0
    iterations: Int32 = 0


class DescribeUserScramCredentialsResult(Message):
    user: str = ""
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    credential_infos: list[CredentialInfo] = []


@message(50, versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    results: list[DescribeUserScramCredentialsResult] = []
