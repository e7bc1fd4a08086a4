"""The first user of a cluster logs in, creates a delegation token, and logs in with it, over the network.

With KAFKA_JARS it does so at Apache Kafka.
"""

from collections.abc import Iterator
from typing import Self, TypeVar

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from core_broker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from core_broker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from core_broker.protocol.scram_client import Scram
from core_broker.security.sasl.scram import BY_NAME, token_password
from tests.support.kafka import KAFKA_JARS, OURS_ALONE
from tests.support.patience import eventually
from tests.support.sasl_broker import SaslBroker
from tests.support.secret_search import places_with_secrets
from tests.support.wire import WireConnection

R = TypeVar("R", bound=Message)

MECHANISM = "SCRAM-SHA-512"
PASSWORD = "first-user-7c1"
SECRET_KEY = "a secret of tests"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    settings = {
        "sasl.enabled.mechanisms": MECHANISM,
        "delegation.token.secret.key": SECRET_KEY,
        "metrics.listener": "http://127.0.0.1:0",
    }
    broker = SaslBroker(tmp_path_factory.mktemp("tokens"), settings=settings)
    broker.add_first_user("admin", PASSWORD, MECHANISM)
    with broker:
        yield broker


class Client:
    """A client of one connection."""

    def __init__(self, broker: SaslBroker, user: str, password: str, *, is_token: bool = False) -> None:
        self.connection = WireConnection(broker.external)
        extensions = ",tokenauth=true" if is_token else ""
        self._scram = Scram(BY_NAME[MECHANISM].hash_name, user, password, extensions=extensions)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.connection.socket.close()

    def log_in(self) -> SaslAuthenticateResponse:
        """The broker's verdict."""
        handshake = self.call(SaslHandshakeRequest(MECHANISM), 1, SaslHandshakeResponse)
        assert handshake.error_code == 0
        challenge = self.call(SaslAuthenticateRequest(self._scram.first()), 2, SaslAuthenticateResponse)
        if KAFKA_JARS is not None and challenge.error_code:
            return challenge  # Kafka says at once that it knows no such user; ours does not tell that apart
        proof = self._scram.proof(challenge.auth_bytes)
        return self.call(SaslAuthenticateRequest(proof), 2, SaslAuthenticateResponse)

    def call(self, request: Message, version: int, response: type[R]) -> R:
        """The response to a request."""
        return self.connection.request(request, version, response)


def login(broker: SaslBroker, user: str, password: str, *, is_token: bool = False) -> SaslAuthenticateResponse:
    """The verdict on a login by a connection of its own."""
    with Client(broker, user, password, is_token=is_token) as client:
        return client.log_in()


@pytest.fixture
def admin(broker: SaslBroker) -> Iterator[Client]:
    with Client(broker, "admin", PASSWORD) as client:
        assert client.log_in().error_code == 0
        yield client


def create(client: Client) -> CreateDelegationTokenResponse:
    created = client.call(CreateDelegationTokenRequest(None, None, [], -1), 3, CreateDelegationTokenResponse)
    assert (created.error_code, created.principal_name) == (0, "admin")

    def is_known() -> bool:
        described = client.call(DescribeDelegationTokenRequest(None), 3, DescribeDelegationTokenResponse)
        return created.hmac in [token.hmac for token in described.tokens]

    eventually(is_known)
    return created


def test_a_token_of_the_first_user_lets_in_until_it_expires(broker: SaslBroker, admin: Client) -> None:
    created = create(admin)
    password = token_password(created.hmac)
    with Client(broker, created.token_id, password, is_token=True) as by_token:
        verdict = by_token.log_in()
        assert verdict.error_code == 0
        assert verdict.session_lifetime_ms > 0
        refused = by_token.call(DescribeDelegationTokenRequest(None), 3, DescribeDelegationTokenResponse)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    expired = admin.call(ExpireDelegationTokenRequest(created.hmac, 0), 2, ExpireDelegationTokenResponse)
    assert expired.error_code == 0

    def refuses() -> bool:
        verdict = login(broker, created.token_id, password, is_token=True)
        if KAFKA_JARS is not None and not verdict.error_code:
            return verdict.session_lifetime_ms == 0  # Kafka lets it in, to a session that has ended
        return verdict.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED

    eventually(refuses)


def test_a_wrong_password_a_token_as_user_and_a_user_as_token_are_refused(broker: SaslBroker, admin: Client) -> None:
    created = create(admin)
    for verdict in (
        login(broker, "admin", "another password"),
        login(broker, "admin", PASSWORD, is_token=True),
        login(broker, created.token_id, token_password(created.hmac)),
    ):
        assert verdict.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@OURS_ALONE
def test_no_secret_is_written_or_shown(broker: SaslBroker, admin: Client) -> None:
    """After the tests above; the token of this one is in use."""
    created = create(admin)
    token = token_password(created.hmac)
    assert login(broker, created.token_id, token, is_token=True).error_code == 0
    secrets = (PASSWORD, "another password", SECRET_KEY, token, created.hmac.hex())
    assert places_with_secrets(broker, secrets) == []
