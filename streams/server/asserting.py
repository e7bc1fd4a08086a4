"""ASSERT TOPIC and ASSERT SCHEMA: what they name exists, or does not, within a time."""

import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from schema_registry.client.errors import SchemaNotFound
from schema_registry.client.registry_client import RegistryClient
from schema_registry.serdes.settings import parse as parse_settings
from streams.formats.registry import Schemas
from streams.server.entities import entity
from streams.server.errors import AssertionFailed, BadStatement, SchemasMissing
from streams.server.topics import Topics
from streams.sql.language.checks.properties import by_name
from streams.sql.language.checks.property_values import number_of
from streams.sql.language.tree.queries import Duration
from streams.sql.language.tree.statements import AssertSchema, AssertTopic

JSON: TypeAlias = Any
_DEFAULT_MS: Final = 1000
_TIMEOUT_MS_MAX: Final = 600_000
_PAUSE_SECONDS: Final = 0.1


def assert_topic(statement: AssertTopic, topics: Topics, text: str) -> JSON:
    """Wait until a topic exists, with so many partitions and replicas; or does not."""
    given = by_name(statement.properties)
    wanted = {name: number_of(given[name].value) for name in ("PARTITIONS", "REPLICAS") if name in given}

    def problem() -> str | None:
        found = topics.describe(statement.topic)
        if not statement.must_exist:
            return f"Topic {statement.topic} exists" if found is not None else None
        if found is None:
            return f"Topic {statement.topic} does not exist"
        has = {"PARTITIONS": len(found.partitions), "REPLICAS": len(found.partitions[0].replicas)}
        wrong = [f"{name}: expected {number}, is {has[name]}" for name, number in wanted.items() if number != has[name]]
        return f"Mismatched configuration for topic {statement.topic}. {', '.join(wrong)}" if wrong else None

    _wait(problem, statement.timeout)
    return entity("assert_topic", text, topicName=statement.topic, exists=statement.must_exist)


def assert_schema(statement: AssertSchema, schemas: Schemas, text: str) -> JSON:
    """Wait until a subject, an id, or this id of this subject exists at the registry; or does not."""
    if statement.subject is None and statement.schema_id is None:
        raise BadStatement("ASSERT SCHEMA needs SUBJECT 'name', ID number, or both.")
    shown = " with ".join(
        part
        for part in (
            "Schema" if statement.subject is None else f"Schema with subject name {statement.subject}",
            None if statement.schema_id is None else f"id {statement.schema_id}",
        )
        if part
    )

    if not schemas.is_configured:
        raise SchemasMissing("ASSERT SCHEMA needs a schema registry: set ksql.schema.registry.url on this server")
    properties = {**schemas.settings.properties, "schema.registry.url": schemas.settings.url}
    with RegistryClient(parse_settings(properties, is_key=False)[0]) as client:

        def problem() -> str | None:
            if _exists(client, statement.subject, statement.schema_id) == statement.must_exist:
                return None
            return f"{shown} {'does not exist' if statement.must_exist else 'exists'}"

        _wait(problem, statement.timeout)
    return entity("assert_schema", text, subject=statement.subject, id=statement.schema_id, exists=statement.must_exist)


def _exists(client: RegistryClient, subject: str | None, schema_id: int | None) -> bool:
    try:
        if schema_id is None:
            return bool(client.versions(subject or ""))
        found = client.versions_of(schema_id)
    except SchemaNotFound:
        return False
    return any(subject in (None, one.subject) for one in found)


def _wait(problem: Callable[[], str | None], timeout: Duration | None) -> None:
    timeout_ms = _DEFAULT_MS if timeout is None else min(timeout.ms, _TIMEOUT_MS_MAX)
    deadline = time.monotonic() + timeout_ms / 1000
    while (found := problem()) is not None:
        if time.monotonic() >= deadline:
            raise AssertionFailed(f"{found}.")
        time.sleep(_PAUSE_SECONDS)
