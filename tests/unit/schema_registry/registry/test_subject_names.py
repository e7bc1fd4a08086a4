"""Qualified names of subjects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema_registry.errors import RegistryError
from schema_registry.registry.subject_names import SubjectName, context_name, parse, parse_beside, parse_for_write


@pytest.mark.parametrize(
    ("text", "context", "name"),
    [
        ("orders", ".", "orders"),
        ("", ".", ""),
        (":.x:orders", ".x", "orders"),
        (":.x:", ".x", ""),
        (":.x", ".x", ""),
        (":.:orders", ".", "orders"),
        (":.x:a:b", ".x", "a:b"),
        (":*:orders", "*", "orders"),
        (":x:orders", ".", ":x:orders"),
        ("a:b", ".", "a:b"),
        ("*", ".", "*"),
    ],
)
def test_a_name_may_begin_with_its_context(text: str, context: str, name: str) -> None:
    assert parse(text) == SubjectName(context, name)


@given(
    st.text(st.characters(exclude_characters=":\x00", exclude_categories=["Cs"])),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
)
def test_a_qualified_name_is_read_as_it_was_written(context: str, name: str) -> None:
    subject = SubjectName(f".{context}", name)
    if subject.is_in_default_context and name.startswith((":.", ":*:")):
        return  # such a name cannot be distinguished from a context
    assert parse(subject.qualified) == subject


def test_a_name_without_a_context_is_meant_beside_another() -> None:
    parent = SubjectName(".x", "orders")
    assert parse_beside(parent, "items") == SubjectName(".x", "items")
    assert parse_beside(parent, ":.y:items") == SubjectName(".y", "items")


def test_the_registry_wide_context_has_no_subjects() -> None:
    assert parse_for_write(":.__GLOBAL:", allow_global=True) == SubjectName(".__GLOBAL", "")
    with pytest.raises(RegistryError) as refused:
        parse_for_write(":.__GLOBAL:")
    assert refused.value.code == 42208


@pytest.mark.parametrize("name", ["x" * 1500, "é" * 750])
def test_names_have_room(name: str) -> None:
    assert parse_for_write(name).name == name
    with pytest.raises(RegistryError):
        parse_for_write(name + "x")


@pytest.mark.parametrize("text", ["x", ".x", ":.x:", ":x:"])
def test_contexts_are_named_in_many_ways(text: str) -> None:
    assert context_name(text) == ".x"
