"""What the engine gets to run a query: its plan, the cluster, and where its checkpoint is kept."""

import re
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec
from typing_extensions import override

from core_broker.client.java_properties import PropertyRefused, to_librdkafka
from streams.errors import WrongOption
from streams.formats.registry import RegistrySettings
from streams.model.plan import QueryPlan
from streams.spark.topics.cluster import READ_COMMITTED, Cluster

BEGIN_ANEW: Final = "replace the query (CREATE OR REPLACE), or drop it and create it again"
"""What the owner of a query can do when it cannot go on where it was."""
_SERVERS: Final = "bootstrap.servers"
_ISOLATION: Final = "isolation.level"
_NUMBER: Final = re.compile(r"-?\d{1,18}")


class QuerySpec(msgspec.Struct, frozen=True, kw_only=True):
    """A query as the engine runs it. It may hold secrets."""

    plan: QueryPlan
    generation: int = 0
    """Another generation has another checkpoint: it begins anew, without the state of the one before."""
    cluster: dict[str, str]
    """Client properties, `bootstrap.servers` among them; in Kafka's names."""
    registry: RegistrySettings = msgspec.field(default_factory=RegistrySettings)
    folder: str
    """Where checkpoints are kept, each in `<name>/<generation>`; on a cluster, one that all executors share."""
    extensions: str = ""
    """The folder of users' functions."""
    trigger_ms: int = 150
    """How often the query looks for new records."""
    transactional: bool = True
    """Whether the records of a batch are written in a transaction; otherwise, at least once."""

    @override
    def __repr__(self) -> str:
        return f"QuerySpec(name={self.plan.name!r}, generation={self.generation})"

    @classmethod
    def of_json(cls, json: Any) -> Self:
        """Read what `msgspec.to_builtins` made of a spec."""
        return msgspec.convert(json, cls)

    @property
    def home(self) -> str:
        """The folder of this generation of the query."""
        return f"{query_folder(self.folder, self.plan.name)}/{self.generation}"

    @property
    def is_transient(self) -> bool:
        """Whether it ends with its client, who wants what there is, though older records may have been deleted."""
        return self.plan.sink is None or (self.plan.is_sink_internal and not self.transactional)

    @property
    def group(self) -> str:
        """The consumer group that offsets are committed for."""
        return self.plan.group or f"_streams-{self.plan.name}"

    @property
    def transactional_id(self) -> str:
        """Each part of a statement has a group, and so transactions, of its own."""
        return self.group

    def marker(self, batch: int) -> str:
        """The metadata of offsets that were committed with a batch; -1 for where the query begins."""
        return f"{self.generation}:{batch}"

    def batch_of(self, marker: str) -> int | None:
        """The batch that metadata name; None if they are of another generation."""
        generation, _, number = marker.partition(":")
        return int(number) if generation == str(self.generation) and _NUMBER.fullmatch(number) else None


def query_folder(folder: str, name: str) -> str:
    """Where all generations of a query are kept; its name may contain any character."""
    return f"{folder.rstrip('/')}/{quote(name, safe='')}"


def cluster_of(properties: dict[str, str]) -> Cluster:
    """The cluster that client properties describe."""
    servers = properties.get(_SERVERS, "").strip()
    if not servers:
        raise WrongOption(_SERVERS, servers, "must be given: host:port, one or more, separated by commas")
    own = {key: value for key, value in properties.items() if key not in (_SERVERS, _ISOLATION)}
    try:
        return Cluster(servers, to_librdkafka(own.items()), READ_COMMITTED)
    except PropertyRefused as error:
        raise WrongOption(error.key, properties.get(error.key), error.reason) from error
