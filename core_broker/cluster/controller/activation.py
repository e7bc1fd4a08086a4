"""What a controller writes before anything else when it becomes the active one."""

from collections.abc import Sequence

from core_broker.cluster.controller.elections import plan_start_of_elr
from core_broker.cluster.features import ELR_FEATURE, METADATA_VERSION, initial_features
from core_broker.cluster.metadata import MetadataImage
from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored
from core_broker.settings import BrokerSettings


def plan_activation(
    image: MetadataImage,
    settings: BrokerSettings,
    *,
    has_open_transaction: bool,
    first_records: Sequence[Message] = (),
) -> list[list[Message]]:
    """The batches to write, in their order: the end of what another controller left behind, and a new cluster's start.

    `first_records` are part of the latter.

    A transaction whose controller is gone is aborted: no other knows how it should have gone on. If it was the start
    of the cluster, that is repeated.
    """
    abort: list[Message] = [stored.AbortTransactionRecord(reason="Controller failover")]
    batches = [abort if has_open_transaction else [], bootstrap_records(image, settings, first_records)]
    return [batch for batch in batches if batch]


def bootstrap_records(
    image: MetadataImage, settings: BrokerSettings, first_records: Sequence[Message] = ()
) -> list[Message]:
    """What a new cluster begins with; metadata.version comes first, since readers learn from it what else to expect."""
    if METADATA_VERSION in image.features:
        return []
    initial = initial_features(settings.initial_release_version)
    features = [stored.FeatureLevelRecord(name=name, feature_level=level) for name, level in initial.items()]
    return [*features, *(plan_start_of_elr(image, settings) if initial.get(ELR_FEATURE) else []), *first_records]
