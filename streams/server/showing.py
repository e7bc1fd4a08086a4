"""SHOW and LIST."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from core_broker.client.models import Topic
from streams.model.types import json_schema
from streams.server.catalog import Catalog
from streams.server.describing import Describer
from streams.server.entities import client_query, entity, listed_source, running_query
from streams.server.progress import status_of
from streams.server.properties import listing
from streams.server.runner import Run
from streams.server.topics import Topics
from streams.server.transient import OpenQueries
from streams.settings import StreamsSettings
from streams.sql.functions.signatures import shown
from streams.sql.functions.table import FUNCTIONS
from streams.sql.language.tree.statements import Show, Shown

JSON: TypeAlias = Any
_GROUPS_MAX: Final = 1000
"""Groups that SHOW TOPICS EXTENDED counts the members of."""


class Shower:
    """Answers SHOW, except for connectors."""

    def __init__(
        self,
        *,
        settings: StreamsSettings,
        catalog: Catalog,
        topics: Topics,
        open_queries: OpenQueries,
        describer: Describer,
        run_of: Callable[[str], Run | None],
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._topics = topics
        self._open_queries = open_queries
        self._describer = describer
        self._run_of = run_of

    def show(self, statement: Show, text: str, *, overridden: Mapping[str, str], variables: Mapping[str, str]) -> JSON:
        """The answer to SHOW."""
        match statement.what:
            case Shown.STREAMS | Shown.TABLES:
                return self._sources(statement, text)
            case Shown.TOPICS | Shown.ALL_TOPICS:
                topics = self._topics.all(with_hidden=statement.what is Shown.ALL_TOPICS)
                return self._extended_topics(topics, text) if statement.is_extended else _plain_topics(topics, text)
            case Shown.QUERIES:
                return self._queries(statement, text)
            case Shown.PROPERTIES:
                return entity("properties", text, **listing(self._settings, overridden))
            case Shown.FUNCTIONS:
                return entity("function_names", text, functions=self._functions())
            case Shown.TYPES:
                types = {name: json_schema(kind) for name, kind in self._catalog.types().items()}
                return entity("type_list", text, types=types)
            case Shown.VARIABLES:
                found = [{"name": name, "value": value} for name, value in sorted(variables.items())]
                return entity("variables", text, variables=found)
            case _:
                raise AssertionError("connectors are shown by Connect")

    def _sources(self, statement: Show, text: str) -> JSON:
        kind = "STREAM" if statement.what is Shown.STREAMS else "TABLE"
        found = [source for source in self._catalog.sources() if source.kind == kind]
        if statement.is_extended:
            described = [self._describer.source_description(source, is_extended=True) for source in found]
            return entity("source_descriptions", text, sourceDescriptions=described)
        listed = [listed_source(source) for source in found]
        if kind == "STREAM":
            return entity("streams", text, streams=listed)
        return entity("tables", text, tables=listed)

    def _queries(self, statement: Show, text: str) -> JSON:
        persistent = list(self._catalog.queries())
        if statement.is_extended:
            described = [self._describer.query_description(query) for query in persistent]
            return entity("query_descriptions", text, queryDescriptions=described)
        listed = [
            running_query(query, status_of(query, self._run_of(query.id)), self._catalog.source(query.writes))
            for query in persistent
        ]
        pushed = [client_query(one.id, one.statement) for one in self._open_queries.all() if one.kind == "push"]
        return entity("queries", text, queries=[*listed, *pushed])

    def _functions(self) -> list[JSON]:
        known = [*FUNCTIONS.values(), *(one.function for one in self._catalog.user_functions().values())]
        return [
            {"name": one.name, "type": one.kind.value.lower(), "category": one.category}
            for one in sorted(known, key=lambda one: one.name)
        ]

    def _extended_topics(self, topics: Iterable[Topic], text: str) -> JSON:
        consumers, groups = self._consumers()
        found = [
            {**_listed_topic(topic), "consumerCount": consumers[topic.name], "consumerGroupCount": groups[topic.name]}
            for topic in topics
        ]
        return entity("kafka_topics_extended", text, topics=found)

    def _consumers(self) -> tuple[Counter[str], Counter[str]]:
        """For each topic, how many members of groups read it, and how many groups."""
        admin = self._topics.admin
        names = [group.group_id for group in admin.groups()][:_GROUPS_MAX]
        members: Counter[str] = Counter()
        readers: dict[str, set[str]] = defaultdict(set)
        for group in admin.describe_groups(names):
            for member in group.members:
                for topic in {topic for topic, _ in member.partitions}:
                    members[topic] += 1
                    readers[topic].add(group.group_id)
        for query in self._catalog.queries():
            # The queries of Spark commit offsets without being members.
            for plan in query.plans:
                for one in plan.inputs:
                    members[one.source.topic] += 1
                    readers[one.source.topic].add(plan.group or plan.name)
        return members, Counter({topic: len(groups) for topic, groups in readers.items()})


def _plain_topics(topics: Iterable[Topic], text: str) -> JSON:
    return entity("kafka_topics", text, topics=[_listed_topic(topic) for topic in topics])


def _listed_topic(topic: Topic) -> dict[str, JSON]:
    return {"name": topic.name, "replicaInfo": [len(partition.replicas) for partition in topic.partitions]}


def described_function(name: str, catalog: Catalog) -> dict[str, JSON] | None:
    """The fields of DESCRIBE FUNCTION; None if there is no such function."""
    own = catalog.user_function(name.upper())
    function = FUNCTIONS.get(name.upper()) if own is None else own.function
    if function is None:
        return None
    first = None if own is None else own.signatures[0]
    return {
        "name": function.name,
        "description": function.description,
        "author": "" if first is None else first.author,
        "version": "" if first is None else first.version,
        "path": "internal" if first is None else first.file,
        "functions": [
            {
                "arguments": [
                    {
                        "name": parameter.name,
                        "type": shown(parameter.pattern),
                        "description": "",
                        "isVariadic": parameter.variadic,
                    }
                    for parameter in one.parameters
                ],
                "returnType": one.returns,
                "description": one.difference,
            }
            for one in function.overloads
        ],
        "type": function.kind.value.lower(),
    }
