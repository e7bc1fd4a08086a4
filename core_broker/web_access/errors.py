"""Errors of logins and access rules, grouped by what the service answers.

AccessError
├── Refused            401: the request has no login, or a wrong one
├── Forbidden          403: the caller may not do that
├── InvalidRule        422: a rule, or a filter for rules, cannot be read
├── TooManyFailures    429: no further password may be tried for a moment
└── Unavailable        503: whether a caller is who it claims to be cannot be checked now
"""

from typing import Final

FORBIDDEN: Final = 40301


class AccessError(Exception):
    """A request fails; what the common error responses need is in the attributes."""

    status = 500
    retry_after_seconds: int | None = None

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.status if code is None else code


class Refused(AccessError):
    """The request has no login, or a wrong one. The message says nothing about which users there are."""

    status = 401

    def __init__(self, message: str, *, user: str = "", reason: str = "", token_error: str | None = None) -> None:
        super().__init__(message)
        self.user = user
        """Who the caller claims to be."""
        self.reason = reason
        """For the audit log; empty if there was no login that could be wrong."""
        self.token_error = token_error
        """What is wrong with a token, in the words of RFC 6750."""


class Forbidden(AccessError):
    """The caller may not do that."""

    status = 403


class InvalidRule(AccessError):
    """A rule, or a filter for rules, cannot be read."""

    status = 422


class TooManyFailures(AccessError):
    """No further password may be tried for a moment."""

    status = 429

    def __init__(self, seconds: int) -> None:
        super().__init__(f"Too many failed logins; try again in {seconds} s")
        self.retry_after_seconds = seconds


class Unavailable(AccessError):
    """Whether a caller is who it claims to be cannot be checked now."""

    status = 503
    retry_after_seconds = 1
