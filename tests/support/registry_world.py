"""A registry without HTTP, and schemas to fill it with."""

import json
from collections.abc import Mapping
from typing import Any

from core_broker.service.clock import ManualClock
from schema_registry.models import Metadata, SchemaBody, SchemaResponse
from schema_registry.registry.registry import Registry
from schema_registry.settings import RegistrySettings
from schema_registry.store.database import Database


class RegistryWorld:
    """A registry over a database, with short ways to ask it."""

    def __init__(self, database: Database, settings: Mapping[str, str] | None = None) -> None:
        self.database = database
        self.clock = ManualClock(now_ms=1_000)
        self.registry = Registry(database, RegistrySettings.parse(dict(settings or {})), self.clock)

    def register(self, subject: str, text: str | None, **body: Any) -> SchemaResponse:
        """Register a schema; `metadata` may be properties."""
        return self.registry.register(subject, schema_body(text, **body))

    def id_of(self, subject: str, text: str, **body: Any) -> int:
        """The id that a registration answers."""
        found = self.register(subject, text, **body).id
        assert found is not None
        return found

    def versions(self, subject: str, **flags: bool) -> list[int]:
        """Version numbers of a subject."""
        asked = {"deleted": False, "deleted_only": False, "deleted_as_negative": False} | flags
        return self.registry.versions(subject, **asked, offset=0, limit=-1)

    def subjects(self, prefix: str = ":*:", **flags: bool) -> list[str]:
        """Subjects by prefix."""
        asked = {"deleted": False, "deleted_only": False} | flags
        return self.registry.subjects(prefix=prefix, **asked, offset=0, limit=-1)

    def delete_permanently(self, subject: str) -> None:
        """Delete a subject twice."""
        self.registry.delete_subject(subject, permanent=False)
        self.registry.delete_subject(subject, permanent=True)


def schema_body(text: str | None, **body: Any) -> SchemaBody:
    """A request's body; `properties` stands for metadata of those."""
    if "properties" in body:
        body["metadata"] = Metadata(properties=body.pop("properties"))
    return SchemaBody.model_validate({"schema": text, **body})


def record(*fields: str, name: str = "Order", **defaults: Any) -> str:
    """An Avro record of optional strings; fields that are named with a value have that default."""
    optional = [{"name": field, "type": ["null", "string"], "default": None} for field in fields]
    required = [{"name": field, "type": "string"} for field in defaults]
    return json.dumps({"type": "record", "name": name, "fields": optional + required}, separators=(",", ":"))
