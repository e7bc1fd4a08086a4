"""Many clients at once: no id twice, no schema with two ids, no gap between versions, nothing half done."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import ConfigUpdate
from tests.support.registry_world import RegistryWorld, record

THREADS = 12


def all_at_once(*calls: Callable[[], object]) -> list[object]:
    """Run calls together; what they raise is part of the result."""

    def run(call: Callable[[], object]) -> object:
        try:
            return call()
        except RegistryError as error:
            return error

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, calls))


def test_the_same_schema_from_many_clients_is_one_version(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    ids = all_at_once(*[lambda: world.id_of("orders", record("a"))] * THREADS)
    assert ids == [1] * THREADS
    assert world.versions("orders") == [1]


def test_the_same_schema_under_many_subjects_has_one_id(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    calls = [lambda subject=f"s{number}": world.id_of(subject, record("a")) for number in range(THREADS)]
    assert set(all_at_once(*calls)) == {1}
    assert len(world.subjects()) == THREADS


def test_versions_and_ids_have_no_gaps_and_no_doubles(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    world.registry.update_config(None, ConfigUpdate(compatibility="NONE"))
    work = [(subject, number) for subject in ("a", "b", "c") for number in range(12)] * 2
    random.Random(1).shuffle(work)
    all_at_once(*[lambda one=one: world.register(one[0], record(f"f{one[1]}")) for one in work])
    ids: dict[str | None, set[int | None]] = {}
    for subject in ("a", "b", "c"):
        assert world.versions(subject) == list(range(1, 13))
        for version in range(1, 13):
            found = world.registry.version(subject, str(version))
            ids.setdefault(found.schema_, set()).add(found.id)
    assert all(len(some) == 1 for some in ids.values())
    assert sorted(one for some in ids.values() for one in some if one) == list(range(1, 13))


@pytest.mark.parametrize("permanent", [False, True])
def test_a_version_is_never_deleted_under_a_reference(world_on_each: RegistryWorld, permanent: bool) -> None:
    world = world_on_each
    user = '{"type":"record","name":"User","fields":[{"name":"b","type":"Base"}]}'
    for number in range(6):
        base, referrer = f"base{number}", f"user{number}"
        world.register(base, record("a", name="Base"))
        all_at_once(
            lambda referrer=referrer, base=base: world.register(  # type: ignore[misc]
                referrer, user, references=[{"name": "Base", "subject": base, "version": 1}]
            ),
            lambda base=base: world.registry.delete_subject(base, permanent=False),  # type: ignore[misc]
            *([lambda base=base: world.registry.delete_subject(base, permanent=True)] if permanent else []),
        )
        is_mentioned = referrer in world.subjects()
        assert is_mentioned == (base in world.subjects()), f"round {number}"


def test_deletes_and_registrations_of_one_content_do_not_break_each_other(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    for number in range(4):
        world.register("old", record(f"f{number}", name=f"R{number}"))
        world.registry.delete_subject("old", permanent=False)
        results = all_at_once(
            lambda: world.registry.delete_subject("old", permanent=True),
            lambda number=number: world.id_of("new", record(f"f{number}", name=f"R{number}")),  # type: ignore[misc]
        )
        assert not [result for result in results if isinstance(result, RegistryError) and result.code >= 50000]
        found = world.registry.version("new", "latest")
        assert found.id is not None
        assert world.registry.schema_by_id(found.id).schema_ == found.schema_
        world.delete_permanently("new")


def test_incompatible_schemas_that_come_together_do_not_both_get_in(world_on_each: RegistryWorld) -> None:
    world = world_on_each
    world.register("orders", record("a"))
    results = all_at_once(
        lambda: world.register(
            "orders", '{"type":"record","name":"Order","fields":[{"name":"x","type":"int","default":1}]}'
        ),
        lambda: world.register(
            "orders", '{"type":"record","name":"Order","fields":[{"name":"x","type":"string","default":""}]}'
        ),
    )
    refused = [result for result in results if isinstance(result, RegistryError)]
    assert [error.code for error in refused] == [40901]
    assert world.versions("orders") == [1, 2]
