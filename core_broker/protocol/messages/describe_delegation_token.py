"""DescribeDelegationToken (key 41)."""

from typing import Annotated

from typing_extensions import override

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, message


class DescribeDelegationTokenOwner(Message):
    principal_type: str = ""
    principal_name: str = ""


@message(41, versions=(1, 3), flexible_since=2)
class DescribeDelegationTokenRequest(Message):
    owners: Annotated[list[DescribeDelegationTokenOwner] | None, NullableSince()] = []


class DescribedDelegationTokenRenewer(Message):
    principal_type: str = ""
    principal_name: str = ""


class DescribedDelegationToken(Message):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, Since(3)] = ""
    token_requester_principal_name: Annotated[str, Since(3)] = ""
    issue_timestamp: Int64 = 0
    expiry_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []

    @override
    def __repr__(self) -> str:
        """Without the HMAC, which is the token's password."""
        return f"DescribedDelegationToken(token_id={self.token_id!r})"


@message(41, versions=(1, 3), flexible_since=2)
class DescribeDelegationTokenResponse(Message):
    error_code: Int16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: Int32 = 0
