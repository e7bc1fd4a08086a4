import pytest

from core_broker.client import errors as cluster
from rest_proxy.errors import ProxyError, from_cluster, from_registry, too_many
from schema_registry.client import errors as registry


@pytest.mark.parametrize(
    "error,status,code,retry",
    [
        (cluster.Unreachable("x"), 503, 503, 1),
        (cluster.NotFound("x"), 404, 40401, None),
        (cluster.AlreadyExists("x"), 400, 40002, None),
        (cluster.NotAllowed("x"), 403, 40301, None),
        (cluster.NotAllowed("x", code=58), 401, 40101, None),
        (cluster.Retriable("x"), 500, 50003, 1),
        (cluster.Rejected("x"), 400, 40002, None),
        (cluster.Fatal("x"), 500, 50002, None),
    ],
)
def test_every_error_of_the_cluster_has_its_answer(
    error: cluster.ClientError, status: int, code: int, retry: int | None
) -> None:
    result = from_cluster(error, address="kafka:9092")
    assert (result.status, result.code, result.retry_after_seconds) == (status, code, retry)


def test_no_kind_of_error_is_left_out() -> None:
    kinds = {kind for kind in cluster.ClientError.__subclasses__() if kind.__module__ == cluster.__name__}
    named = {
        cluster.Unreachable,
        cluster.NotFound,
        cluster.AlreadyExists,
        cluster.NotAllowed,
        cluster.Retriable,
        cluster.Rejected,
        cluster.Fatal,
    }
    assert kinds == named


def test_users_without_authorization_get_the_message_of_javas_clients() -> None:
    result = from_cluster(cluster.NotAllowed("Broker: Topic authorization failed", code=29))
    assert result.message == "Not authorized to access topics: Broker: Topic authorization failed"


def test_a_cluster_that_does_not_answer_is_reported_with_its_address() -> None:
    assert "kafka:9092" in from_cluster(cluster.Unreachable("silence"), address="kafka:9092").message


@pytest.mark.parametrize(
    "error,code",
    [
        (registry.RegistryUnreachable("x"), 503),
        (registry.NotAllowed("x"), 40301),
        (registry.IncompatibleSchema("x"), 42205),
        (registry.SchemaNotFound("x"), 42205),
        (registry.Refused("x"), 42205),
    ],
)
def test_every_error_of_the_registry_has_its_answer(error: registry.ClientError, code: int) -> None:
    assert from_registry(error).code == code


def test_what_may_succeed_later_is_retriable() -> None:
    assert too_many("x").is_retriable
    assert from_cluster(cluster.Retriable("x")).is_retriable
    assert not ProxyError(42203, "x").is_retriable
