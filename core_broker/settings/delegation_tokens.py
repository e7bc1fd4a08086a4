"""Settings of delegation tokens, with which clients log in on behalf of a user."""

from core_broker.service.settings import LONG, PASSWORD, Settings, at_least, optional, setting

_DAY_MS = 24 * 60 * 60 * 1000


class DelegationTokenSettings(Settings):
    """Delegation tokens (KIP-48); the same on all nodes."""

    delegation_token_secret_key: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """Secret from which the passwords of delegation tokens are computed; the same on all brokers and controllers. With
    another one all tokens become invalid. Not set or empty: there are no delegation tokens."""
    delegation_token_max_lifetime_ms: int = setting(LONG, default=7 * _DAY_MS, check=at_least(1))
    """How long a delegation token may live at most, however often it is renewed."""
    delegation_token_expiry_time_ms: int = setting(LONG, default=_DAY_MS, check=at_least(1))
    """After how long a delegation token expires unless it is renewed."""
    delegation_token_expiry_check_interval_ms: int = setting(LONG, default=60 * 60 * 1000, check=at_least(1))
    """How often the active controller removes expired delegation tokens; they are refused as soon as they expire."""
