"""Users and delegation tokens in a cluster of three: every node has them, whichever is the active controller."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from core_broker.__main__ import add_first_user
from core_broker.errors import ErrorCode
from core_broker.handlers.table import BROKER_BY_KEY
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.messages import describe_quorum as quorum_wire
from core_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from core_broker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from core_broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from core_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from core_broker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from core_broker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from core_broker.protocol.principals import Principal, encode_host, encode_principal
from core_broker.security.tokens import token_hmac
from core_broker.settings import BrokerSettings
from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster, ClusterNode
from tests.support.wire import WireConnection, request_body

pytestmark = pytest.mark.timeout(300)

ALICE = Principal("User", "alice")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    settings = {
        "delegation.token.secret.key": "a secret of tests",
        "delegation.token.expiry.check.interval.ms": "200",
    }
    cluster = BrokerCluster(tmp_path_factory.mktemp("users"), settings=settings)
    add_first_user(
        BrokerSettings(log_dirs=(str(cluster[1].data),)), "admin", "a password", mechanisms=["SCRAM-SHA-512"]
    )
    with cluster:
        yield cluster


def users(node: ClusterNode) -> dict[str, list[int]]:
    """The mechanisms of all users that a node knows."""
    with WireConnection(node.bootstrap) as connection:
        request = DescribeUserScramCredentialsRequest(None)
        response = connection.request(request, 0, DescribeUserScramCredentialsResponse)
    return {result.user: [info.mechanism for info in result.credential_infos] for result in response.results}


def active(cluster: BrokerCluster) -> ClusterNode:
    """The active controller."""
    node = next(node for node in cluster if node.is_running)
    asked = quorum_wire.DescribeQuorumRequest(
        [quorum_wire.TopicData("__cluster_metadata", [quorum_wire.PartitionData(0)])]
    )
    with WireConnection(node.bootstrap) as connection:
        response = connection.request(asked, 2, quorum_wire.DescribeQuorumResponse)
    return cluster[response.topics[0].partitions[0].leader_id]


def as_alice(cluster: BrokerCluster, request: Message, version: int) -> Message:
    """The response to a request of a client that a broker has forwarded."""
    assert request.API_KEY is not None
    frame = request_body(request, version)
    envelope = EnvelopeRequest(frame, encode_principal(ALICE), encode_host("192.0.2.9"))
    with WireConnection(f"127.0.0.1:{active(cluster).controller_port}") as connection:
        answer = connection.request(envelope, 0, EnvelopeResponse)
    assert (answer.error_code, answer.response_data is not None) == (0, True)
    assert answer.response_data is not None
    api = BROKER_BY_KEY[request.API_KEY]
    header_bytes = 5 if api.has_flexible_response_header(version) else 4
    return decode(api.response, version, answer.response_data, header_bytes)


def create(cluster: BrokerCluster) -> CreateDelegationTokenResponse:
    response = as_alice(cluster, CreateDelegationTokenRequest(None, None, [], -1), 3)
    assert isinstance(response, CreateDelegationTokenResponse)
    return response


def renew(cluster: BrokerCluster, hmac: bytes) -> RenewDelegationTokenResponse:
    response = as_alice(cluster, RenewDelegationTokenRequest(hmac, -1), 2)
    assert isinstance(response, RenewDelegationTokenResponse)
    return response


def expire(cluster: BrokerCluster, hmac: bytes, period_ms: int) -> ExpireDelegationTokenResponse:
    response = as_alice(cluster, ExpireDelegationTokenRequest(hmac, period_ms), 2)
    assert isinstance(response, ExpireDelegationTokenResponse)
    return response


def test_the_first_user_is_known_everywhere_and_its_file_is_gone(cluster: BrokerCluster) -> None:
    for node in cluster:
        eventually(partial(users, node), lambda found: found.get("admin") == [2])
    assert not list(Path(cluster[1].data).glob("bootstrap.checkpoint*"))


def test_a_user_that_one_broker_takes_in_is_known_everywhere(cluster: BrokerCluster) -> None:
    with WireConnection(cluster[3].bootstrap) as connection:
        change = ScramCredentialUpsertion("bob", 1, 4096, b"salt", b"salted password")
        request = AlterUserScramCredentialsRequest([], [change])
        response = connection.request(request, 0, AlterUserScramCredentialsResponse)
    assert [(result.user, result.error_code) for result in response.results] == [("bob", 0)]
    for node in cluster:
        eventually(partial(users, node), lambda found: "bob" in found)


def test_a_broker_does_not_forward_requests_about_tokens_of_an_unknown_client(cluster: BrokerCluster) -> None:
    for node in cluster:
        with WireConnection(node.bootstrap) as connection:
            request = CreateDelegationTokenRequest(None, None, [], -1)
            response = connection.request(request, 3, CreateDelegationTokenResponse)
        assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_tokens_and_users_outlive_the_active_controller_and_a_restart_of_all(cluster: BrokerCluster) -> None:
    created = create(cluster)
    assert created.hmac == token_hmac("a secret of tests", created.token_id)
    first = active(cluster)
    first.kill()
    running = [node for node in cluster if node is not first]
    eventually(lambda: active(cluster) in running)
    assert renew(cluster, created.hmac).error_code == 0
    first.start()
    for node in cluster:
        node.stop()
    cluster.start()
    assert renew(cluster, created.hmac).error_code == 0
    for node in cluster:
        eventually(partial(users, node), lambda found: "admin" in found)


def test_an_expired_token_is_removed_after_a_while(cluster: BrokerCluster) -> None:
    hmac = create(cluster).hmac
    assert expire(cluster, hmac, 0).error_code == 0
    eventually(lambda: renew(cluster, hmac).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
