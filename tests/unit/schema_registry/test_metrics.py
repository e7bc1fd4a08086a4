"""What the registry counts."""

from pathlib import Path

import pytest

from core_broker.service.clock import SystemClock
from schema_registry.errors import RegistryError
from schema_registry.models import SchemaBody
from schema_registry.registry.registry import Registry
from schema_registry.settings import RegistrySettings
from schema_registry.store.database import Database


def counted(registry: Registry) -> dict[str, float]:
    return {
        f"{family.name.removeprefix('caudal_registry_')}{{{labels[0]}}}": value
        for family in registry.metrics.families()
        for labels, value in family.samples
    }


def test_registrations_refusals_and_deletes_are_counted(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/registry.db")
    database.migrate()
    registry = Registry(database, RegistrySettings(), SystemClock())
    for _ in range(2):  # the second time nothing is new
        registry.register("a", SchemaBody(schema_='"int"'))
    registry.register("a", SchemaBody(schema_='"long"'))
    with pytest.raises(RegistryError):
        registry.register("a", SchemaBody(schema_='"string"'))
    with pytest.raises(RegistryError):
        registry.register("a", SchemaBody(schema_="{"))
    registry.delete_subject("a", permanent=False)
    registry.delete_version("a", "1", permanent=True)
    database.close()
    assert counted(registry) == {
        "schemas_registered_total{AVRO}": 2,
        "schemas_refused_total{40901}": 1,
        "schemas_refused_total{42201}": 1,
        "versions_deleted_total{soft}": 2,
        "versions_deleted_total{permanent}": 1,
    }
