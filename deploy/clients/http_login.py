"""Who the tools are at HTTP services: the same user as at the cluster, by the properties of a Kafka client.

User and password of SCRAM and PLAIN become Basic, OAUTHBEARER a Bearer token, and a key store the certificate that is
shown. A password or token goes only over https, or to this machine, unless the user insists; no client follows
redirects, so it goes nowhere else.
"""

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from core_broker.client.connection import mechanism_of
from core_broker.client.oauth import fetch_token, gets_tokens, is_this_machine
from core_broker.client.tls import client_context

INSIST: Final = "--insecure-http"


class PlainHttp(ValueError):
    """Credentials that were given for a service would go to it unencrypted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLogin:
    """The login of a Kafka client, for HTTP services."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """In librdkafka's names."""
    insists: bool = False
    """Whether credentials may go unencrypted to other machines."""

    def may_send_to(self, url: str) -> bool:
        """Whether credentials may go to an address."""
        parts = urlsplit(url)
        return self.insists or parts.scheme == "https" or is_this_machine(parts.hostname)

    def password_login(self) -> tuple[str, str] | None:
        """User and password, if the client logs in with them."""
        mechanism = mechanism_of(self.properties) if self._logs_in else ""
        if mechanism != "PLAIN" and not mechanism.startswith("SCRAM-"):
            return None
        user = self.properties.get("sasl.username", "")
        return (user, self.properties.get("sasl.password", "")) if user else None

    def token(self) -> str | None:
        """A token, if the client logs in with one; raises a ClientError of the cluster's client."""
        if not self._logs_in or mechanism_of(self.properties) != "OAUTHBEARER" or not gets_tokens(self.properties):
            return None
        return fetch_token(self.properties)

    def authorization(self, url: str) -> str | None:
        """The value of Authorization for requests to an address; None without credentials that may go there."""
        if not self.may_send_to(url):
            return None
        if (login := self.password_login()) is not None:
            return f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"
        token = self.token()
        return None if token is None else f"Bearer {token}"

    def tls(self) -> ssl.SSLContext:
        """The authorities that are trusted, and the certificate that is shown; raises a ClientError."""
        return client_context(self.properties)

    @property
    def _logs_in(self) -> bool:
        return self.properties.get("security.protocol", "").upper().startswith("SASL")


def trust_problem(error: BaseException | None) -> str | None:
    """What is wrong with the certificate of a service, if that is why a request failed."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    return (
        f"its certificate is not trusted ({error.verify_message}): the client file names authorities by "
        "ssl.truststore.location or ssl.ca.location"
    )
