"""The settings with which another broker joins a cluster, for Caudal and for Apache Kafka."""

from collections.abc import Mapping
from typing import Final

from core_broker.client.models import Quorum

_NO_DIRECTORY: Final = "A" * 22
"""The directory id of voters that are listed in the settings: the quorum knows them by their ids alone."""
_LISTENER_NAME: Final = "inter.broker.listener.name"
ALIKE: Final = (
    "default.replication.factor",
    "min.insync.replicas",
    "num.partitions",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
)
"""Settings that decide about topics, whichever broker creates them."""


class UnknownControllersError(Exception):
    """The cluster does not say where its controllers listen."""


def join_settings(
    node_id: int, *, cluster_id: str, quorum: Quorum, configs: Mapping[str, str | None], for_kafka: bool
) -> list[str]:
    """Lines of a properties file; `configs` are those of a broker that is a member already."""
    name = configs.get(_LISTENER_NAME) or "PLAINTEXT"
    return [
        *_comments(cluster_id, for_kafka=for_kafka),
        "process.roles=broker",
        f"node.id={node_id}",
        f"listeners={name}://HOST:9092",
        f"{_LISTENER_NAME}={name}",
        *_controllers(quorum),
        "log.dirs=FOLDER",
        *(f"{key}={configs[key]}" for key in ALIKE if configs.get(key) is not None),
    ]


def _comments(cluster_id: str, *, for_kafka: bool) -> list[str]:
    if not for_kafka:
        return ["# Fill in HOST and FOLDER; then:  caudal broker --config FILE"]
    return [
        "# Fill in HOST and FOLDER; then:",
        f"#   kafka-storage.sh format --config FILE --cluster-id {cluster_id}",
        "#   kafka-server-start.sh FILE",
    ]


def _controllers(quorum: Quorum) -> list[str]:
    """Where the controllers are: all of them where the quorum is fixed, and some to ask where voters may change."""
    if not all(voter.listeners for voter in quorum.voters):
        raise UnknownControllersError
    found = sorted(((voter.id, voter.listeners[0]) for voter in quorum.voters), key=lambda pair: pair[0])
    name = found[0][1].name
    if all(voter.directory_id == _NO_DIRECTORY for voter in quorum.voters):
        voters = ",".join(f"{id_}@{listener.host}:{listener.port}" for id_, listener in found)
        return [f"controller.listener.names={name}", f"controller.quorum.voters={voters}"]
    servers = ",".join(f"{listener.host}:{listener.port}" for _, listener in found)
    return [f"controller.listener.names={name}", f"controller.quorum.bootstrap.servers={servers}"]
