"""Authorization of requests: none, a configured header, a user with a password, or a token that is renewed."""

import base64
import threading
import time
from typing import Any, Final

import httpx2
import msgspec
from typing_extensions import override

from connect.api.errors import RetriableError
from connectors.http.config import HttpConfig

_EARLY_SECONDS: Final = 30.0
_ASSUMED_SECONDS: Final = 300.0
"""How long a token without an expiry is used."""


class Authorization:
    """The same header for all requests, or none."""

    def __init__(self, header: str = "") -> None:
        self._headers = {"Authorization": header} if header else {}

    def headers(self) -> dict[str, str]:
        """The headers of the next request; RetriableError when a token cannot be obtained now."""
        return self._headers

    def renew(self) -> bool:
        """Discard a token that was refused; False when there is none."""
        return False


def authorization_of(config: HttpConfig, client: httpx2.Client) -> Authorization:
    """The configured authorization."""
    match config.http_authorization_type:
        case "static":
            return Authorization(config.http_headers_authorization)
        case "basic":
            return Authorization(_basic(config.connection_user, config.connection_password))
        case "oauth2":
            return _Token(config, client)
        case _:
            return Authorization()


class _Token(Authorization):
    """A token for client credentials, requested when it is needed and renewed before it expires."""

    def __init__(self, config: HttpConfig, client: httpx2.Client) -> None:
        super().__init__()
        self._config = config
        self._client = client
        self._token = ""
        self._until = 0.0
        self._lock = threading.Lock()

    @override
    def headers(self) -> dict[str, str]:
        with self._lock:
            if not self._token or time.monotonic() >= self._until:
                self._token, lifetime = self._request_token()
                self._until = time.monotonic() + max(lifetime - min(_EARLY_SECONDS, lifetime / 2), 0)
            return {"Authorization": f"Bearer {self._token}"}

    @override
    def renew(self) -> bool:
        with self._lock:
            self._token = ""
        return True

    def _request_token(self) -> tuple[str, float]:
        config = self._config
        form = {"grant_type": "client_credentials"}
        headers = {"Accept": "application/json"}
        if config.oauth2_client_scope:
            form["scope"] = config.oauth2_client_scope
        if config.oauth2_client_authorization_mode == "header":
            headers["Authorization"] = _basic(config.oauth2_client_id, config.oauth2_client_secret)
        else:
            form |= {"client_id": config.oauth2_client_id, "client_secret": config.oauth2_client_secret}
        try:
            response = self._client.post(config.oauth2_access_token_url, data=form, headers=headers)
        except httpx2.HTTPError as error:
            raise RetriableError(f"no access token: {str(error) or type(error).__name__}") from error
        if not response.is_success:
            raise RetriableError(f"no access token: HTTP status {response.status_code}")
        name = config.oauth2_response_token_property
        try:
            document: Any = msgspec.json.decode(response.content)
            token = document[name]
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            raise RetriableError(f"no access token: the response is not JSON with {name}") from error
        lifetime = document.get("expires_in")
        is_number = isinstance(lifetime, int | float) and not isinstance(lifetime, bool)
        return str(token), float(lifetime) if is_number else _ASSUMED_SECONDS


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}"
