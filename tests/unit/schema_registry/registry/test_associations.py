import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from core_broker.service.clock import ManualClock
from schema_registry.errors import RegistryError
from schema_registry.models import ConfigUpdate, ModeBody, SchemaBody
from schema_registry.models_associations import (
    Association,
    AssociationBatch,
    AssociationQueries,
    AssociationResult,
    ResourceChange,
)
from schema_registry.registry import association_batches as batches
from schema_registry.registry import deletes
from schema_registry.registry.associations import Associations
from schema_registry.registry.registry import Registry
from schema_registry.registry.subject_names import SubjectName
from schema_registry.settings import RegistrySettings
from schema_registry.store.associations import EVERYTHING, Filter
from schema_registry.store.database import Database
from tests.support.registry_database import new_database, new_database_of

INT, STRING = '"int"', '"string"'


class World:
    """A registry with associations, and short words for what clients ask of them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = ManualClock(now_ms=1_000)
        self.registry = Registry(database, RegistrySettings(), self.clock)
        self.removals = 0
        self.associations = Associations(
            database, self.clock, schemas=self.registry, on_subjects_removed=self._note_removal
        )

    def _note_removal(self) -> None:
        self.removals += 1

    def register(self, subject: str, text: str = INT) -> None:
        self.registry.register(subject, SchemaBody(schema_=text))

    def create(self, *associations: dict[str, Any], **more: Any) -> Any:
        return self.associations.create(resource(*associations), **more)

    def upsert(self, *associations: dict[str, Any], **more: Any) -> Any:
        return self.associations.upsert(resource(*associations), **more)

    def found(self, resource_id: str = "id-1", wanted: Filter = EVERYTHING) -> list[Association]:
        return self.associations.of_resource(resource_id, wanted)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    database = new_database(tmp_path)
    yield World(database)
    database.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.processes)])
def world_on_each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The same, once on each kind of database."""
    database = new_database_of(request.param, request, tmp_path)
    yield World(database)
    database.close()


def resource(*associations: dict[str, Any], resource_id: str | None = "id-1", name: str = "orders") -> ResourceChange:
    return ResourceChange.model_validate(
        {
            "resourceName": name,
            "resourceNamespace": "lkc1",
            "resourceId": resource_id,
            "resourceType": "topic",
            "associations": list(associations),
        }
    )


def weak(subject: str = "s", kind: str = "value", **more: Any) -> dict[str, Any]:
    return {"subject": subject, "associationType": kind, "lifecycle": "WEAK", **more}


def strong(subject: str = "s", kind: str = "value", **more: Any) -> dict[str, Any]:
    return {"subject": subject, "associationType": kind, "lifecycle": "STRONG", **more}


def with_schema(kind: str = "value", text: str = INT, **more: Any) -> dict[str, Any]:
    return {"associationType": kind, "schema": {"schema": text}, **more}


def refused(code: int, match: str | None = None) -> "pytest.RaisesExc[RegistryError]":
    return pytest.RaisesExc(RegistryError, match=match, check=lambda error: error.code == code)


# --- creating ---


def test_an_association_is_returned_as_it_was_created(world: World) -> None:
    world.register("s")
    answer = world.create(strong())

    assert json.loads(answer.to_json()) == {
        "resourceName": "orders",
        "resourceNamespace": "lkc1",
        "resourceId": "id-1",
        "resourceType": "topic",
        "associations": [{"subject": "s", "associationType": "value", "lifecycle": "STRONG", "frozen": False}],
    }
    found = json.loads(world.found()[0].to_json())
    assert len(found.pop("guid")) == 36
    assert found == {
        "subject": "s",
        "resourceName": "orders",
        "resourceNamespace": "lkc1",
        "resourceId": "id-1",
        "resourceType": "topic",
        "associationType": "value",
        "lifecycle": "STRONG",
        "frozen": False,
        "createTs": 1_000,
        "updateTs": 1_000,
    }


def test_without_more_words_an_association_is_weak_and_of_values(world: World) -> None:
    world.register("s")
    world.create({"subject": "s"})

    assert (world.found()[0].lifecycle, world.found()[0].association_type) == ("WEAK", "value")


def test_with_a_schema_it_is_registered_and_frozen_under_the_topics_own_subject(world: World) -> None:
    answer = world.create(with_schema())

    (association,) = answer.associations
    assert (association.subject, association.lifecycle, association.frozen) == (":.lkc1:orders-value", "STRONG", True)
    assert association.schema_.schema_ == INT
    assert world.registry.version(":.lkc1:orders-value", "latest").schema_ == INT


def test_a_strong_association_without_a_subject_takes_the_topics_own(world: World) -> None:
    world.register(":.lkc1:orders-value")

    assert world.create({"lifecycle": "STRONG"}).associations[0].subject == ":.lkc1:orders-value"


def test_a_context_holds_for_subjects_that_name_none(world: World) -> None:
    world.register(":.staging:s")

    assert world.create(weak(), context=".staging").associations[0].subject == ":.staging:s"
    assert world.associations.of_subject(":.staging:s", EVERYTHING) == world.found()
    assert world.associations.of_subject("s", EVERYTHING) == []


def test_an_alias_is_replaced_by_its_subject(world: World) -> None:
    world.register("real")
    world.registry.update_config("s", ConfigUpdate(alias="real"))

    assert world.create(weak()).associations[0].subject == "real"


def test_a_dry_run_checks_and_changes_nothing(world: World) -> None:
    world.register("s")
    answer = world.associations.create(resource(strong(), resource_id=None), dry_run=True)

    assert answer.associations is None
    with refused(40907):
        world.create(strong("t"), dry_run=True)
    world.create(with_schema(), dry_run=True)
    assert world.found() == []
    with refused(40401):
        world.registry.version(":.lkc1:orders-value", "latest")


def test_creating_the_same_again_is_fine(world: World) -> None:
    world.create(with_schema())
    before = world.found()
    world.clock.advance(5)

    assert world.create(with_schema()).associations[0].subject == ":.lkc1:orders-value"
    assert world.found() == before


def test_a_resource_has_one_association_of_a_type(world: World) -> None:
    world.register("s")
    world.create(weak())

    with refused(40903):
        world.create(strong())
    with refused(42212, "Duplicate"):
        world.create(weak(kind="key"), weak(kind="key"))


def test_creating_a_frozen_association_again_with_another_schema_is_refused(world: World) -> None:
    world.create(with_schema())

    with refused(40903):
        world.create(with_schema(text=STRING))


def test_an_associated_subject_needs_a_version(world: World) -> None:
    with refused(40907):
        world.create(weak())
    world.register("s")
    world.registry.delete_subject("s", permanent=False)
    with refused(40907):
        world.create(weak())


def test_a_strong_association_bears_no_other(world: World) -> None:
    world.register("s")
    world.create(weak())

    with refused(40904):
        world.associations.create(resource(strong(), resource_id="id-2"))
    world.register("t")
    with refused(40904):
        world.associations.create(resource(strong("t", "key"), weak("t"), resource_id="id-3"))


def test_a_weak_association_bears_other_weak_ones_alone(world: World) -> None:
    world.register("s")
    world.register("t")
    world.create(weak(), strong("t", "key"))

    world.associations.create(resource(weak(), resource_id="id-2"))
    with refused(40905):
        world.associations.create(resource(weak("t"), resource_id="id-3"))


def test_a_full_registry_takes_no_more(world: World) -> None:
    world.register("s")
    small = Associations(world.database, world.clock, schemas=world.registry, max_associations=1)
    small.create(resource(weak()))

    with refused(40902):
        small.create(resource(weak(), resource_id="id-2"))
    small.create(resource(weak()))


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("resourceName", resource(weak(), name="")),
        ("resourceName", resource(weak(), name="a/b")),
        ("resourceName", resource(weak(), name="n" * 257)),
        ("resourceNamespace", resource(weak()).model_copy(update={"resource_namespace": None})),
        ("resourceId", resource(weak(), resource_id=None)),
        ("resourceId", resource(weak(), resource_id="i" * 257)),
        ("resourceType", resource(weak()).model_copy(update={"resource_type": "bucket"})),
        ("associations", resource()),
        ("associationType", resource(weak(kind="header"))),
        ("subject", resource(weak(""))),
        ("subject", resource({"lifecycle": "WEAK"})),
        ("subject", resource(weak(":.lkc1:orders-value"))),
        ("subject", resource(with_schema(subject="s"))),
        ("frozen", resource(weak(frozen=True))),
        ("schema", resource({"frozen": True, "lifecycle": "STRONG"})),
        ("lifecycle", resource(with_schema(lifecycle="WEAK"))),
        ("frozen", resource(with_schema(frozen=False))),
        ("frozen", resource(with_schema("key"), strong())),
    ],
)
def test_an_unusable_request_is_refused_with_the_reason(world: World, reason: str, change: ResourceChange) -> None:
    with refused(42212, f"'{reason}'"):
        world.associations.create(change)


def test_a_frozen_association_needs_a_subject_without_versions(world: World) -> None:
    world.register(":.lkc1:orders-value")

    with refused(42212, "schemas already exist"):
        world.create(with_schema())


def test_an_invalid_schema_is_refused_as_such(world: World) -> None:
    with refused(42201):
        world.create(with_schema(text='"no type"'))
    assert world.found() == []


def test_an_incompatible_schema_is_refused_before_anything_is_done(world: World) -> None:
    world.register("s")
    world.create(strong())

    with refused(40901):
        world.upsert(strong(schema={"schema": '{"type":"array","items":"int"}'}))


def test_where_nothing_may_change_no_association_may(world: World) -> None:
    world.register("s")
    world.create(weak())
    world.registry.set_mode("s", ModeBody(mode="READONLY"), force=False)

    with refused(42205):
        world.upsert(strong())
    with refused(42205):
        world.associations.delete("id-1")


# --- changing ---


def test_an_upsert_creates(world: World) -> None:
    answer = world.upsert(with_schema())

    assert (answer.associations[0].lifecycle, answer.associations[0].frozen) == ("STRONG", False)


def test_an_upsert_changes_the_lifecycle_and_nothing_else(world_on_each: World) -> None:
    world = world_on_each
    world.register("s")
    world.create(weak())
    before = world.found()[0]
    world.clock.advance(5)

    world.upsert({"lifecycle": "STRONG"})

    after = world.found()[0]
    assert (after.guid, after.create_ts, after.subject) == (before.guid, before.create_ts, "s")
    assert (after.lifecycle, after.update_ts) == ("STRONG", 1_005)


def test_an_upsert_may_bring_the_next_schema(world: World) -> None:
    world.register("s")
    world.create(strong())

    world.upsert({"schema": {"schema": '"long"'}})

    assert world.registry.version("s", "latest").version == 2


def test_a_subject_cannot_be_exchanged(world: World) -> None:
    world.register("s")
    world.register("t")
    world.create(weak())

    with refused(42212, "cannot be changed"):
        world.upsert(weak("t"))


def test_a_frozen_association_stays_as_it_is(world: World) -> None:
    world.create(with_schema())

    with refused(40908):
        world.upsert(weak("", kind="value") | {"subject": None})
    with refused(42212, "cannot be changed"):
        world.upsert({"frozen": False})
    with refused(40908):
        world.upsert(with_schema(text='"long"', lifecycle="STRONG"))
    with refused(40908):
        world.associations.delete("id-1")


def test_a_weak_association_cannot_be_frozen(world: World) -> None:
    world.register("s")
    world.create(weak())

    with refused(42212, "cannot be frozen"):
        world.upsert(weak(frozen=True))
    with refused(42212, "cannot be frozen"):
        world.upsert({"frozen": True})


def test_all_associations_of_a_resource_are_frozen_or_none(world: World) -> None:
    world.create(with_schema("key"))
    world.register("s")

    with refused(42212, "consistently"):
        world.upsert(strong())
    world.upsert(with_schema(frozen=True, lifecycle="STRONG"))
    assert [association.frozen for association in world.found()] == [True, True]


def test_of_strong_associations_at_once_one_is_made(world_on_each: World) -> None:
    world = world_on_each
    world.register("s")
    codes: list[int] = []

    def create(number: int) -> None:
        try:
            world.associations.create(resource(strong(), resource_id=f"id-{number}"))
            codes.append(200)
        except RegistryError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(codes) == [200, *[40904] * 5]


# --- reading ---


def test_associations_are_found_by_subject_id_and_name(world_on_each: World) -> None:
    world = world_on_each
    world.register("s")
    world.create(weak(kind="value"), weak(kind="key"))
    everything = [association.association_type for association in world.found()]

    assert everything == ["key", "value"]
    assert world.associations.of_subject("s", EVERYTHING) == world.found()
    assert world.associations.of_name("orders", "lkc1", EVERYTHING) == world.found()
    assert world.associations.of_name("orders", "-", EVERYTHING) == world.found()
    assert world.associations.of_name("orders", None, EVERYTHING) == world.found()
    assert world.associations.of_name("orders", "lkc2", EVERYTHING) == []
    assert world.associations.of_name("Orders", "-", EVERYTHING) == []


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        (Filter(resource_type="topic"), ["key", "value"]),
        (Filter(resource_type="bucket"), []),
        (Filter(association_types=["key"]), ["key"]),
        (Filter(association_types=["key", "value"]), ["key", "value"]),
        (Filter(lifecycle="STRONG"), ["value"]),
        (Filter(offset=1), ["value"]),
        (Filter(limit=1), ["key"]),
    ],
)
def test_filters_and_pages(world: World, wanted: Filter, kinds: list[str]) -> None:
    world.register("s")
    world.register("t")
    world.create(weak(kind="key"), strong("t"))

    assert [association.association_type for association in world.found(wanted=wanted)] == kinds


@pytest.mark.parametrize("text", ["s\0", "s\ud800"])
def test_texts_that_no_database_keeps_find_nothing(world_on_each: World, text: str) -> None:
    assert world_on_each.associations.of_subject(text, EVERYTHING) == []
    assert world_on_each.found(text) == []
    assert world_on_each.found(wanted=Filter(association_types=[text])) == []
    assert world_on_each.associations.of_name(text, "-", EVERYTHING) == []
    with refused(40410):
        world_on_each.associations.delete("id-1", association_types=[text])


# --- deleting ---


def test_deleting_leaves_the_subject_alone(world: World) -> None:
    world.register("s")
    world.register("t")
    world.create(strong(), weak("t", "key"))

    world.associations.delete("id-1", association_types=["value"])

    assert [association.association_type for association in world.found()] == ["key"]
    assert world.registry.version("s", "latest").version == 1
    assert world.removals == 0


def test_deleting_may_delete_the_subject_of_a_strong_association(world_on_each: World) -> None:
    world = world_on_each
    world.register("s")
    world.register("t")
    world.create(strong(), weak("t", "key"))

    world.associations.delete("id-1", cascade=True)

    assert world.found() == []
    with refused(40401):
        world.registry.version("s", "latest", deleted=True)
    assert world.registry.version("t", "latest").version == 1
    assert world.removals == 1


def test_a_subject_that_is_referenced_elsewhere_keeps_its_association(world: World) -> None:
    world.register("s", '{"type":"record","name":"A","fields":[]}')
    world.registry.register(
        "user",
        SchemaBody.model_validate(
            {
                "schema": '{"type":"record","name":"B","fields":[{"name":"a","type":"A"}]}',
                "references": [{"name": "A", "subject": "s", "version": 1}],
            }
        ),
    )
    world.create(strong())

    with refused(42206):
        world.associations.delete("id-1", cascade=True)
    assert len(world.found()) == 1


def test_a_frozen_association_goes_with_its_subject(world: World) -> None:
    world.create(with_schema())

    world.associations.delete("id-1", cascade=True, dry_run=True)
    assert len(world.found()) == 1
    world.associations.delete("id-1", cascade=True)
    assert world.found() == []


def test_while_schemas_are_imported_subjects_stay(world: World) -> None:
    world.register("s")
    world.create(strong())
    world.registry.set_mode("s", ModeBody(mode="IMPORT"), force=True)

    world.associations.delete("id-1", cascade=True)

    assert world.registry.version("s", "latest").version == 1


def test_what_is_not_there_cannot_be_deleted(world: World) -> None:
    with refused(40410):
        world.associations.delete("id-1")
    world.register("s")
    world.create(weak())
    with refused(40410):
        world.associations.delete("id-1", association_types=["key"])


# --- what associations forbid ---


def test_an_associated_subject_must_not_be_deleted(world: World) -> None:
    world.register("s")
    world.create(weak())
    subject = SubjectName(".", "s")

    def delete(connection: Connection) -> list[int]:
        return deletes.delete_subject(connection, subject, permanent=False)

    with refused(40904):
        world.database.write(delete)
    world.associations.delete("id-1")
    assert world.database.write(delete) == [1]


def test_the_last_version_of_an_associated_subject_must_not_be_deleted(world: World) -> None:
    world.register("s", INT)
    world.register("s", '["int", "string"]')
    world.create(weak())
    subject = SubjectName(".", "s")

    def delete(number: int) -> int:
        return world.database.write(
            lambda connection: deletes.delete_version(connection, subject, number, permanent=False)
        )

    assert delete(1) == 1
    with refused(40907):
        delete(2)


# --- batches ---


def operation(kind: str, **values: Any) -> dict[str, Any]:
    return {"opType": kind, **values}


def mutated(world: World, *requests: tuple[str, list[dict[str, Any]]], **more: Any) -> list[AssociationResult]:
    body = {
        "requests": [
            {"resourceName": name, "resourceNamespace": "lkc1", "resourceId": f"id-{name}", "associations": operations}
            for name, operations in requests
        ]
    }
    return batches.mutate(world.associations, AssociationBatch.model_validate(body), **more).results


def test_a_batch_does_several_things_for_several_resources(world: World) -> None:
    world.register("s")
    results = mutated(
        world,
        ("a", [operation("CREATE", **weak(kind="key")), operation("UPSERT", **weak())]),
        ("b", [operation("CREATE", **weak()), operation("DELETE", associationType="value")]),
    )

    assert [result.error for result in results] == [None, None]
    first, second = (result.result for result in results)
    assert first is not None
    assert second is not None
    assert [association.association_type for association in first.associations or []] == ["key", "value"]
    assert second.associations is None


def test_what_fails_in_a_batch_leaves_the_rest_alone(world: World) -> None:
    world.register("s")
    failed, done = mutated(world, ("a", [operation("CREATE", **weak("t"))]), ("b", [operation("CREATE", **weak())]))

    assert json.loads(failed.to_json()) == {
        "error": {"error_code": 40907, "message": "No active (non-deleted) version exists for subject 't'"}
    }
    assert done.error is None


def test_a_batch_is_checked_before_its_first_step(world: World) -> None:
    world.register("s")
    (result,) = mutated(world, ("a", [operation("CREATE", **with_schema("key")), operation("CREATE", **strong())]))

    assert result.error is not None
    assert result.error.error_code == 42212
    assert world.found("id-a") == []


def test_a_dry_run_of_a_batch_changes_nothing(world: World) -> None:
    world.register("s")
    (result,) = mutated(world, ("a", [operation("CREATE", **weak())]), dry_run=True)

    assert result.error is None
    assert result.result is not None
    assert result.result.associations is None
    assert world.found("id-a") == []


def test_a_batch_may_delete_subjects(world: World) -> None:
    mutated(world, ("a", [operation("CREATE", **with_schema())]))

    (kept,) = mutated(world, ("a", [operation("DELETE")]))
    (done,) = mutated(world, ("a", [operation("DELETE", cascadeLifecycle=True)]))

    assert kept.error is not None
    assert kept.error.error_code == 40908
    assert done.error is None
    with refused(40401):
        world.registry.version(":.lkc1:a-value", "latest", deleted=True)


def test_a_batch_must_not_be_empty_or_huge(world: World) -> None:
    with refused(42212, "'requests'"):
        mutated(world)
    with refused(42213):
        mutated(world, ("a", [operation("DELETE")] * 1001))


def test_a_batch_of_questions(world: World) -> None:
    world.register("s")
    world.create(weak())
    queries = AssociationQueries.model_validate(
        {
            "requests": [
                {"resourceId": "id-1"},
                {"resourceName": "orders", "resourceNamespace": "lkc1", "lifecycle": "STRONG"},
                {"resourceId": "unknown"},
            ]
        }
    )

    first, second, third = batches.get(world.associations, queries, include_schemas=True).results

    assert first.result is not None
    assert first.result.resource_name == "orders"
    assert [association.schema_.schema_ for association in first.result.associations or [] if association.schema_] == [
        INT
    ]
    assert json.loads(second.to_json())["result"] == {
        "resourceName": "orders",
        "resourceNamespace": "lkc1",
        "resourceType": "topic",
    }
    assert json.loads(third.to_json())["result"] == {"resourceId": "unknown", "resourceType": "topic"}
    (plain, *_) = batches.get(world.associations, queries).results
    assert plain.result is not None
    assert [association.schema_ for association in plain.result.associations or []] == [None]


def test_a_name_that_several_resources_have_is_refused(world: World) -> None:
    world.register("s")
    world.create(weak())
    world.associations.create(resource(weak(), resource_id="id-2"))
    queries = AssociationQueries.model_validate({"requests": [{"resourceName": "orders"}]})

    (result,) = batches.get(world.associations, queries).results
    assert result.error is not None
    assert result.error.error_code == 42212
