"""Options that the source and the sink have in common: who we are, how long to wait, and what an answer means."""

from collections.abc import Iterable
from typing import Final

import httpx2
import msgspec
from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    PASSWORD,
    STRING,
    Config,
    Importance,
    Problem,
    at_least,
    between,
    not_empty,
    one_of,
    option,
)
from connect.api.errors import ConfigError
from connectors.http.status_codes import StatusCodes

CHOICE: Final = msgspec.structs.replace(STRING, read=str.lower)
"""Text of which capital letters do not matter."""
_ACCESS, _WAITING, _ANSWERS = "Authorization", "Timeouts", "Answers"


class HttpConfig(Config):
    """How to speak with an API."""

    http_headers_content_type: str = option(STRING, default="")
    """The Content-Type of requests; not set: application/json, or text/plain for request.body.format=string."""
    http_headers_additional: str = option(STRING, default="", aliases=("http.request.headers",))
    """More headers for each request: `Name: value, Other: value`."""
    headers: str = option(STRING, default="")
    """The same with header.separator between them, for values that have commas."""
    header_separator: str = option(STRING, default="|", check=not_empty(), importance=Importance.LOW)
    """What stands between two headers in `headers`."""

    http_authorization_type: str = option(
        CHOICE,
        default="none",
        check=one_of("none", "static", "basic", "oauth2"),
        aliases=("auth.type", "http.auth.type"),
        importance=Importance.HIGH,
        group=_ACCESS,
    )
    """How requests are authorized: none, static (http.headers.authorization), basic (connection.user) or oauth2."""
    http_headers_authorization: str = option(PASSWORD, default="", group=_ACCESS)
    """The header Authorization for http.authorization.type=static, such as `Bearer …`."""
    connection_user: str = option(STRING, default="", aliases=("http.auth.user",), group=_ACCESS)
    """The user for http.authorization.type=basic."""
    connection_password: str = option(PASSWORD, default="", aliases=("http.auth.password",), group=_ACCESS)
    """The password of that user."""
    oauth2_access_token_url: str = option(STRING, default="", aliases=("oauth2.token.url",), group=_ACCESS)
    """Where tokens come from (grant type client_credentials); they are renewed before they expire."""
    oauth2_client_id: str = option(STRING, default="", group=_ACCESS)
    """Who asks for tokens."""
    oauth2_client_secret: str = option(PASSWORD, default="", group=_ACCESS)
    """The secret of that client."""
    oauth2_client_authorization_mode: str = option(
        CHOICE,
        default="header",
        check=one_of("header", "url"),
        aliases=("oauth2.client.auth.mode",),
        importance=Importance.LOW,
        group=_ACCESS,
    )
    """Whether id and secret go as a header (basic) or in the body (url)."""
    oauth2_client_scope: str = option(STRING, default="", importance=Importance.LOW, group=_ACCESS)
    """The scope that is asked for."""
    oauth2_response_token_property: str = option(
        STRING,
        default="access_token",
        check=not_empty(),
        aliases=("oauth2.token.property",),
        importance=Importance.LOW,
        group=_ACCESS,
    )
    """The property of the answer that is the token."""

    http_timeout: float = option(DOUBLE, default=30.0, check=between(0.01, 3600), group=_WAITING)
    """How many seconds a whole request may take."""
    http_request_timeout_ms: int = option(
        LONG, default=0, check=between(0, 3_600_000), aliases=("http.client.read.timeout.millis",), group=_WAITING
    )
    """The same in milliseconds; 0: as http.timeout says."""
    http_connect_timeout_ms: int = option(
        LONG,
        default=10_000,
        check=between(1, 3_600_000),
        aliases=("http.client.connection.timeout.millis",),
        group=_WAITING,
    )
    """How many milliseconds connecting may take."""
    http_requests_per_second: float = option(DOUBLE, default=0.0, check=between(0, 1_000_000), group=_WAITING)
    """Most requests of a task in a second; 0: as many as possible."""

    retry_on_status_codes: str = option(STRING, default="401,403,407,408,425,429,500-", group=_ANSWERS)
    """Which statuses are an outage, as numbers and ranges: the same is asked again until it works, and no record is to
    blame. All others from 400 on are about the request."""
    retry_backoff_ms: int = option(
        INT, default=3000, check=at_least(0), aliases=("kafka.retry.backoff.ms",), group=_ANSWERS
    )
    """How long to wait before that, unless the answer says it (Retry-After)."""
    max_retries: int = option(INT, default=10, check=at_least(0), group=_ANSWERS)
    """How often a status from 400 to 499 that retry.on.status.codes adds is tried again before it is about the record.
    An outage is never given up."""

    http_proxy_host: str = option(STRING, default="", importance=Importance.LOW, group="Connection")
    """A proxy that all requests go through."""
    http_proxy_port: int = option(INT, default=8080, check=between(1, 65_535), importance=Importance.LOW)
    """The port of that proxy."""
    http_proxy_user: str = option(STRING, default="", importance=Importance.LOW)
    """Who we are at that proxy."""
    http_proxy_password: str = option(PASSWORD, default="", importance=Importance.LOW)
    """The password at that proxy."""
    http_ssl_trust_all_certs: bool = option(BOOLEAN, default=False, importance=Importance.LOW)
    """Whether any certificate of the server is accepted; for tests only."""
    https_ssl_truststore_location: str = option(STRING, default="", importance=Importance.LOW)
    """A file with the certificates (PEM) that the server's must come from; not set: those of the system."""
    https_ssl_keystore_location: str = option(STRING, default="", importance=Importance.LOW)
    """A file with the certificate and the key (PEM) that this side shows."""
    https_ssl_key_password: str = option(PASSWORD, default="", importance=Importance.LOW)
    """The password of that key."""

    @override
    def problems(self) -> Iterable[Problem]:
        for key, name in _NEEDED.get(self.http_authorization_type, {}).items():
            if not getattr(self, name):
                told = f"must be given with http.authorization.type={self.http_authorization_type}"
                yield Problem(key, f'Invalid value "" for configuration {key}: {told}')
        if self.oauth2_access_token_url:
            yield from url_problems("oauth2.access.token.url", self.oauth2_access_token_url)
        for key, check in (
            ("retry.on.status.codes", lambda: StatusCodes.parse("retry.on.status.codes", self.retry_on_status_codes)),
            ("http.headers.additional", self.more_headers),
        ):
            try:
                check()
            except ConfigError as error:
                yield Problem(key, str(error))

    @property
    def timeout_seconds(self) -> float:
        """How long a whole request may take."""
        return self.http_request_timeout_ms / 1000 if self.http_request_timeout_ms else self.http_timeout

    def more_headers(self) -> dict[str, str]:
        """The headers that are configured; raises ConfigError."""
        found = _headers("http.headers.additional", self.http_headers_additional, separator=",")
        return {**found, **_headers("headers", self.headers, separator=self.header_separator)}


_NEEDED: Final = {
    "static": {"http.headers.authorization": "http_headers_authorization"},
    "basic": {"connection.user": "connection_user"},
    "oauth2": {
        "oauth2.access.token.url": "oauth2_access_token_url",
        "oauth2.client.id": "oauth2_client_id",
        "oauth2.client.secret": "oauth2_client_secret",
    },
}


def content_type(config: HttpConfig, *, default: str) -> dict[str, str]:
    """The header Content-Type of a body; none when it stands among the other headers."""
    if config.http_headers_content_type:
        return {"Content-Type": config.http_headers_content_type}
    return {} if any(name.lower() == "content-type" for name in config.more_headers()) else {"Content-Type": default}


def url_problems(key: str, text: str) -> Iterable[Problem]:
    """What is wrong with a URL."""
    try:
        url = httpx2.URL(text)
        is_right = url.scheme in ("http", "https") and bool(url.host)
    except httpx2.InvalidURL:
        is_right = False
    if not is_right:
        yield Problem(key, f"Invalid value {text} for configuration {key}: must be a URL, http://… or https://…")


def _headers(key: str, text: str, *, separator: str) -> dict[str, str]:
    found = {}
    for item in filter(None, (part.strip() for part in text.split(separator))):
        name, colon, value = item.partition(":")
        if not colon or not name.strip() or not name.strip().isascii() or "\n" in value or "\r" in value:
            raise ConfigError(f"Invalid value {item} for configuration {key}: must be `Name: value`")
        found[name.strip()] = value.strip()
    return found
