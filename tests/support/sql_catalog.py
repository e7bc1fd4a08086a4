"""A catalog of streams and tables for statements that are planned without a server."""

from collections.abc import Iterable, Mapping

import msgspec

from streams.model.plan import Query, QueryPlan
from streams.model.pull import PullPlan
from streams.model.sources import Source
from streams.model.types import SqlType
from streams.sql.analysis.facts import Facts, Options
from streams.sql.functions.user import UserFunction
from streams.sql.language.script import read_script
from streams.sql.language.tree.queries import Query as Select
from streams.sql.language.tree.statements import CreateAsSelect, CreateSource, InsertSelect, Statement
from streams.sql.planning.queries import Planned, plan_create, plan_insert, plan_pull, plan_push
from streams.sql.planning.sources import Declared, declare


def read_one(text: str) -> Statement:
    """A statement without mistakes."""
    (read,) = read_script(text if text.endswith(";") else f"{text};")
    assert read.statement is not None, read.problems
    assert not read.problems, read.problems
    return read.statement


class KnownSources:
    """Everything that has been defined in it; its topics have two partitions."""

    def __init__(self, *statements: str) -> None:
        self.known: dict[str, Source] = {}
        self.running: dict[str, Query] = {}
        self.named_types: dict[str, SqlType] = {}
        self.functions: Mapping[str, UserFunction] = {}
        self.properties: dict[str, str] = {"auto.offset.reset": "earliest"}
        self.partitions: dict[str, int] = {}
        for statement in statements:
            self.add(statement)

    def source(self, name: str) -> Source | None:
        """A stream or table."""
        return self.known.get(name)

    def sources(self) -> Iterable[Source]:
        """All of them."""
        return self.known.values()

    def type(self, name: str) -> SqlType | None:
        """A type that has a name."""
        return self.named_types.get(name)

    def query(self, id: str) -> Query | None:  # noqa: A002 - what the catalog calls it
        """A persistent query."""
        return self.running.get(id)

    def queries(self) -> Iterable[Query]:
        """All persistent queries."""
        return self.running.values()

    def user_function(self, name: str) -> UserFunction | None:
        """A user's function."""
        return self.functions.get(name)

    @property
    def facts(self) -> Facts:
        """The topics of all sources."""
        return Facts(self.partitions)

    def options(self, query_id: str = "Q_1") -> Options:
        """How statements are run."""
        return Options(service_id="default_", query_id=query_id, properties=self.properties)

    def declare(self, text: str) -> Declared:
        """A CREATE STREAM or TABLE over a topic."""
        statement = read_one(text)
        assert isinstance(statement, CreateSource)
        return declare(statement, self, self.facts, self.options())

    def create(self, text: str, query_id: str = "Q_1") -> Planned:
        """A CREATE ... AS SELECT, or INSERT INTO ... SELECT."""
        statement = read_one(text)
        if isinstance(statement, InsertSelect):
            return plan_insert(statement, self, self.facts, self.options(query_id))
        assert isinstance(statement, CreateAsSelect)
        return plan_create(statement, self, self.facts, self.options(query_id))

    def push(self, text: str) -> tuple[QueryPlan, ...]:
        """A SELECT ... EMIT."""
        statement = read_one(text)
        assert isinstance(statement, Select)
        return plan_push(statement, self, self.facts, self.options("transient_1"))

    def pull(self, text: str) -> PullPlan:
        """A SELECT of what there is."""
        statement = read_one(text)
        assert isinstance(statement, Select)
        return plan_pull(statement, self, self.facts, self.options("pull_1"))

    def add(self, text: str) -> Source:
        """Define what a statement declares or creates."""
        statement = read_one(text)
        if isinstance(statement, CreateSource):
            topic = next(item.value for item in statement.properties if item.name == "KAFKA_TOPIC")
            self.partitions.setdefault(str(getattr(topic, "value", "")), 2)
            source = self.declare(text).source
        else:
            planned = self.create(text, f"Q_{len(self.known)}")
            source = planned.sink
            self.running[planned.query.id] = planned.query
            self.partitions.setdefault(source.topic, 2)
        self.known[source.name] = source
        return source

    def materialize(self, name: str) -> None:
        """Let a table be one that servers keep a copy of."""
        self.known[name] = msgspec.structs.replace(self.known[name], is_materialized=True)
