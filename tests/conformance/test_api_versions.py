"""ApiVersions, to the byte: what clients of every age need to find before they send anything else."""

import struct

import pytest

from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.apis import MUST
from tests.support.broker import BrokerProcess
from tests.support.wire import WireConnection, sized

SINGLE_POINTS_OF_OLD_LIBRDKAFKA = [(0, 3), (0, 7), (1, 4), (1, 10), (2, 1), (9, 1), (8, 2), (22, 0), (10, 0), (11, 0)]


def ask(broker: BrokerProcess, version: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="conformance", client_software_version="1.0")
    with WireConnection(broker.bootstrap) as connection:
        return connection.request(request, version, ApiVersionsResponse)


def ranges(answer: ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_is_answered_with_response_header_0(broker: BrokerProcess, version: int) -> None:
    answer = ask(broker, version)
    assert answer.error_code == 0
    assert set(MUST) <= set(ranges(answer))


@pytest.mark.parametrize("key", MUST)
def test_advertised_range_covers_what_clients_need(broker: BrokerProcess, key: int) -> None:
    low, high = ranges(ask(broker, 0))[key]
    assert low <= MUST[key][0]
    assert high >= MUST[key][1]


@pytest.mark.parametrize("key,version", SINGLE_POINTS_OF_OLD_LIBRDKAFKA)
def test_single_versions_that_old_librdkafka_looks_for_are_offered(
    broker: BrokerProcess, key: int, version: int
) -> None:
    low, high = ranges(ask(broker, 0))[key]
    assert low <= version <= high


def test_a_version_above_ours_is_answered_with_the_body_of_version_0(broker: BrokerProcess) -> None:
    with WireConnection(broker.bootstrap) as connection:
        connection.send(sized(struct.pack(">hhihB", 18, 99, 7, -1, 0) + b"\x05name\x02v\x00"))
        answer = connection.receive()
    correlation_id, error, count, key, low, high = struct.unpack(">ihihhh", answer)
    assert (correlation_id, error, count, key, low) == (7, 35, 1, 18, 0)
    assert high >= 4


def test_the_connection_goes_on_after_an_unsupported_version(broker: BrokerProcess) -> None:
    with WireConnection(broker.bootstrap) as connection:
        connection.send(sized(struct.pack(">hhihB", 18, 99, 7, -1, 0) + b"\x05name\x02v\x00"))
        connection.receive()
        assert connection.request(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def test_features_of_minimum_0_are_hidden_from_version_3(broker: BrokerProcess) -> None:
    features = ask(broker, 3).supported_features
    assert all(feature.min_version > 0 for feature in features)


def test_version_4_tells_the_features_and_that_transactions_are_version_2(broker: BrokerProcess) -> None:
    answer = ask(broker, 4)
    supported = {feature.name: feature.max_version for feature in answer.supported_features}
    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert supported["transaction.version"] == 2
    assert supported["group.version"] >= 1
    assert finalized["transaction.version"] == 2
    assert finalized["group.version"] >= 1
    assert answer.finalized_features_epoch >= 0


def test_a_client_name_with_forbidden_characters_is_an_invalid_request(broker: BrokerProcess) -> None:
    request = ApiVersionsRequest(client_software_name="no spaces!", client_software_version="1.0")
    with WireConnection(broker.bootstrap) as connection:
        assert connection.request(request, 3, ApiVersionsResponse).error_code == 42


@pytest.mark.parametrize("key", [4, 5, 6, 7, 71, 72])
def test_what_must_not_be_advertised_is_not(broker: BrokerProcess, key: int) -> None:
    assert key not in ranges(ask(broker, 0))
