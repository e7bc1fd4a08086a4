from core_broker.cluster.controller.activation import plan_activation
from core_broker.cluster.metadata import MetadataImage
from core_broker.protocol.stored.metadata import AbortTransactionRecord, ConfigRecord, FeatureLevelRecord
from core_broker.settings import BrokerSettings

NEW = MetadataImage(cluster_id="c")
OLD = MetadataImage(cluster_id="c", features={"metadata.version": 30})


def test_a_new_cluster_begins_with_its_version_its_features_and_its_minimum_of_replicas_in_sync() -> None:
    (batch,) = plan_activation(NEW, BrokerSettings(min_insync_replicas=2), has_open_transaction=False)
    first, *rest, last = batch
    assert first == FeatureLevelRecord("metadata.version", 30)
    assert all(isinstance(record, FeatureLevelRecord) for record in rest)
    assert last == ConfigRecord(4, "", "min.insync.replicas", "2")


def test_a_transaction_of_a_lost_controller_is_aborted_in_a_batch_of_its_own() -> None:
    assert plan_activation(OLD, BrokerSettings(), has_open_transaction=False) == []
    abort = [AbortTransactionRecord("Controller failover")]
    assert plan_activation(OLD, BrokerSettings(), has_open_transaction=True) == [abort]
    assert plan_activation(NEW, BrokerSettings(), has_open_transaction=True)[0] == abort
