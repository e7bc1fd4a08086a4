import pytest

from schema_registry.client.errors import Refused
from schema_registry.client.models import Reference, RegisteredSchema, SchemaDefinition
from schema_registry.client.references import MAX_REFERENCES, resolve


def _reference(subject: str, name: str = "") -> Reference:
    return Reference(name or subject, subject, 1)


class _World:
    """Schemas by subject, with their references."""

    def __init__(self, references: dict[str, list[Reference]]) -> None:
        self._references = references
        self.fetched: list[str] = []

    def resolve(self, *references: Reference) -> list[str]:
        return [found.name for found in resolve(SchemaDefinition("", references=references), self._fetch)]

    def _fetch(self, subject: str, version: int) -> RegisteredSchema:
        self.fetched.append(subject)
        definition = SchemaDefinition(f"text of {subject}", references=tuple(self._references.get(subject, ())))
        return RegisteredSchema(definition=definition, subject=subject, version=version)


def test_each_reference_comes_before_those_that_use_it() -> None:
    world = _World({"a": [_reference("b")], "b": [_reference("c")]})
    assert world.resolve(_reference("a")) == ["c", "b", "a"]


def test_a_diamond_is_fetched_and_returned_once() -> None:
    world = _World({"left": [_reference("base")], "right": [_reference("base")]})
    assert world.resolve(_reference("left"), _reference("right")) == ["base", "left", "right"]
    assert world.fetched.count("base") == 1


def test_one_schema_by_two_names_is_returned_by_both() -> None:
    world = _World({})
    assert world.resolve(_reference("a", "x.json"), _reference("a", "./x.json")) == ["x.json", "./x.json"]


def test_a_reference_to_the_latest_version_is_stored_with_its_number() -> None:
    registered = RegisteredSchema(definition=SchemaDefinition("t"), version=7)
    definition = SchemaDefinition("", references=(Reference("n", "s", -1),))
    assert resolve(definition, lambda _subject, _version: registered)[0].version == 7


def test_the_latest_version_is_the_same_as_its_number() -> None:
    registered = RegisteredSchema(definition=SchemaDefinition("t"), version=7)
    definition = SchemaDefinition("", references=(Reference("n", "s", 7), Reference("n", "s", -1)))
    assert len(resolve(definition, lambda _subject, _version: registered)) == 1


def test_schemas_that_reference_themselves_are_refused() -> None:
    world = _World({"a": [_reference("b")], "b": [_reference("a")]})
    with pytest.raises(Refused, match="schema a version 1 references itself"):
        world.resolve(_reference("a"))


def test_a_long_chain_needs_no_stack_but_has_an_end() -> None:
    chain = {str(number): [_reference(str(number + 1))] for number in range(MAX_REFERENCES - 1)}
    assert len(_World(chain).resolve(_reference("0"))) == MAX_REFERENCES
    chain[str(MAX_REFERENCES - 1)] = [_reference("last")]
    with pytest.raises(Refused, match="more than 1000"):
        _World(chain).resolve(_reference("0"))
