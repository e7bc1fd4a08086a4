"""Errors of logins and access rules, grouped by what the service answers.

AccessError
├── Forbidden      403: the caller may not do that
├── InvalidRule    422: a rule, or a filter for rules, cannot be read
└── Unavailable    503: whether a password is right cannot be checked now
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


class Forbidden(AccessError):
    """The caller may not do that."""

    status = 403


class InvalidRule(AccessError):
    """A rule, or a filter for rules, cannot be read."""

    status = 422


class Unavailable(AccessError):
    """Whether a caller is who it claims to be cannot be checked now."""

    status = 503
    retry_after_seconds = 1
