import pytest

from core_broker.client.errors import AlreadyExists, ClientError, NotAllowed, NotFound, Rejected, Retriable
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.errors import ProxyError

pytestmark = pytest.mark.processes


def test_cluster_knows_its_id_once_it_was_asked(cluster: KafkaCluster) -> None:
    found = cluster.describe()
    assert cluster.id == found.cluster_id
    cluster.check(found.cluster_id)


def test_no_other_id_is_found(cluster: KafkaCluster) -> None:
    with pytest.raises(ProxyError, match=r"Cluster another cannot be found\.") as raised:
        cluster.check("another")
    assert raised.value.code == 404


def test_an_unreachable_cluster_is_reported_with_its_address(cluster: KafkaCluster, nowhere: KafkaCluster) -> None:
    with pytest.raises(ProxyError) as raised:
        nowhere.check(cluster.describe().cluster_id)
    assert raised.value.status == 503
    assert "127.0.0.1:1" in raised.value.message
    assert raised.value.retry_after_seconds


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("x"), 40403),
        (AlreadyExists("x"), 40002),
        (Rejected("x"), 40002),
        (NotAllowed("x"), 40301),
        (Retriable("x"), 50003),
        (ClientError("x"), 50002),
    ],
)
def test_errors_have_the_codes_of_api_v3(cluster: KafkaCluster, error: ClientError, code: int) -> None:
    with pytest.raises(ProxyError) as raised, cluster.admin():
        raise error
    assert raised.value.code == code
