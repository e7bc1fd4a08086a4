"""CreateDelegationToken (key 38)."""

from typing import Annotated

from typing_extensions import override

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, message


class CreatableRenewers(Message):
    principal_type: str = ""
    principal_name: str = ""


@message(38, versions=(1, 3), flexible_since=2)
class CreateDelegationTokenRequest(Message):
    owner_principal_type: Annotated[str | None, Since(3), NullableSince(3)] = ""
    owner_principal_name: Annotated[str | None, Since(3), NullableSince(3)] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: Int64 = 0


@message(38, versions=(1, 3), flexible_since=2)
class CreateDelegationTokenResponse(Message):
    error_code: Int16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, Since(3)] = ""
    token_requester_principal_name: Annotated[str, Since(3)] = ""
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: Int32 = 0

    @override
    def __repr__(self) -> str:
        """Without the HMAC, which is the token's password."""
        return f"CreateDelegationTokenResponse(error_code={self.error_code}, token_id={self.token_id!r})"
