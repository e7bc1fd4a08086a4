"""What statements that define something will do, worked out before anything is done."""

from collections.abc import Mapping
from dataclasses import dataclass

from streams.catalog.state import Change, Cleanup
from streams.formats.registry import Schemas
from streams.model.plan import Query, TopicRequest
from streams.model.sources import Source
from streams.server.catalog import Catalog
from streams.server.errors import BadStatement, NotReady
from streams.server.topics import INTERNAL, Topics
from streams.settings import StreamsSettings
from streams.sql.analysis.facts import Facts, Inferred, Options
from streams.sql.language.tree.statements import CreateSource
from streams.sql.planning.sources import needs_inference


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a statement does: topics and schemas first, then the changes of the catalog, all together."""

    command_id: str
    message: str
    changes: tuple[Change, ...] = ()
    """Without any, nothing is done, and the message says why."""
    query_id: str | None = None
    topics: tuple[TopicRequest, ...] = ()
    register: Source | None = None
    """Whose schemas are registered."""
    awaited: tuple[str, ...] = ()
    """The cleanups that the answer waits for."""
    warnings: tuple[str, ...] = ()
    is_warning: bool = False
    """The message is a warning: what should be made exists."""


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """What a statement is planned against."""

    settings: StreamsSettings
    schemas: Schemas
    topics: Topics
    state: Catalog
    partitions: dict[str, int]
    """The topics that exist, and those that statements before this one will have made."""
    properties: Mapping[str, str]
    """As they hold for the statement."""
    overridden: Mapping[str, str]
    """Those that the request or SET has given."""
    number: int
    """Where the statement will be in the log; part of the ids of queries."""

    def use(self, overridden: Mapping[str, str]) -> None:
        """SET and UNSET have changed the properties."""
        self.properties = {**self.settings.defaults(), **overridden}
        self.overridden = overridden

    def facts(self, inferred: Inferred | None = None) -> Facts:
        """What the cluster and the registry say."""
        return Facts(partitions=self.partitions, inferred=inferred)

    def options(self, query_id: str = "", *, replicas: int | None = None, start: str | None = None) -> Options:
        """How the statement is run; `start` says where its query begins."""
        own = {} if start is None else {"auto.offset.reset": start}
        return options_of(self.settings, {**self.properties, **own}, query_id, replicas=replicas)

    def inferred(self, statement: CreateSource) -> Inferred | None:
        """The columns of a statement that come from the registry; None if none do."""
        wanted = needs_inference(statement, self.options())
        if wanted is None:
            return None
        key, value = wanted.key, wanted.value
        return Inferred(
            key=() if key is None else self.schemas.infer(wanted.topic, is_key=True, format=key),
            value=() if value is None else self.schemas.infer(wanted.topic, is_key=False, format=value),
            key_schema_id=None if key is None else key.schema_id,
            value_schema_id=None if value is None else value.schema_id,
        )

    def check_free(self, topic: str) -> None:
        """Raise unless a topic can be used: one that is being deleted cannot."""
        if any(topic in cleanup.topics for cleanup in self.state.cleanups()):
            raise NotReady(f"Topic {topic} is still being deleted. Try again in a few seconds", code=50301)

    def check_writable(self, topic: str) -> None:
        """Raise unless a query or an INSERT may write to a topic."""
        self.check_free(topic)
        if self.topics.is_read_only(topic):
            raise BadStatement(f"Cannot write to topic {topic}: it is read-only (ksql.readonly.topics)")


def options_of(
    settings: StreamsSettings, properties: Mapping[str, str], query_id: str = "", *, replicas: int | None = None
) -> Options:
    """The options of a plan."""
    return Options(
        service_id=settings.ksql_service_id,
        query_id=query_id,
        properties=properties,
        default_replicas=replicas or settings.ksql_internal_topic_replicas,
    )


def cleanup_of(query: Query, *, topics: tuple[str, ...] = (), subjects: tuple[str, ...] = ()) -> Cleanup:
    """What is left to do after a query: dead letters stay."""
    internal = tuple(request.name for request in query.topics if request.name.startswith(INTERNAL))
    return Cleanup(
        name=query.id,
        jobs=tuple(plan.name for plan in query.plans),
        topics=(*internal, *topics),
        subjects=(*internal, *subjects),
        groups=tuple(sorted({plan.group for plan in query.plans if plan.group is not None})),
    )


def quoted_command(kind: str, name: str, action: str) -> str:
    """The id of a statement that makes something."""
    return f"{kind.lower()}/`{name}`/{action}"


def bare_command(kind: str, name: str, action: str) -> str:
    """The id of any other statement."""
    return f"{kind.lower()}/{name}/{action}"
