"""ExpireDelegationToken (key 40)."""

from typing_extensions import override

from core_broker.protocol.fields import Int16, Int32, Int64, Message, message


@message(40, versions=(1, 2), flexible_since=2)
class ExpireDelegationTokenRequest(Message):
    hmac: bytes = b""
    expiry_time_period_ms: Int64 = 0

    @override
    def __repr__(self) -> str:
        """Without the HMAC, which is the token's password."""
        return f"ExpireDelegationTokenRequest(expiry_time_period_ms={self.expiry_time_period_ms})"


@message(40, versions=(1, 2), flexible_since=2)
class ExpireDelegationTokenResponse(Message):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
