"""The HTTP client with which the tools talk to a service, logged in as at the cluster."""

from typing import Final

import httpx2

from deploy.clients.http_login import INSIST, HttpLogin

_CONNECT_SECONDS: Final = 5.0


def open_http(url: str, *, example: str, timeout_seconds: float, login: HttpLogin | None) -> httpx2.Client:
    """A client for one service; raises ValueError for an invalid address, and errors of the cluster's client if the
    login cannot be used."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ValueError(f"{url!r} is not a valid address: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"{url!r} must look like {example}")
    login = login or HttpLogin()
    if parsed.userinfo and not login.may_send_to(url):
        raise ValueError(f"the password in it would go unencrypted to {parsed.host}: use https, or add {INSIST}")
    authorization = login.authorization(url)
    # Only what the options say: no proxy from the environment between us and localhost.
    return httpx2.Client(
        verify=login.tls() if parsed.scheme == "https" else False,
        headers={} if authorization is None else {"authorization": authorization},
        timeout=httpx2.Timeout(timeout_seconds, connect=min(timeout_seconds, _CONNECT_SECONDS)),
        trust_env=False,
        follow_redirects=False,
    )
