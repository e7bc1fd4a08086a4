"""YAML that every reader reads as it was meant."""

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from deploy.manifests.yaml_text import Comment, Value, yaml_text

_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], include_characters=" "), max_size=30)
_LINES = st.lists(st.text("abc: #-'\"{", min_size=1, max_size=9).map(str.strip).filter(bool), min_size=2).map("\n".join)
_FLAT = st.none() | st.booleans() | st.integers() | _TEXT | _LINES
_KEYS = _TEXT.filter(bool)
_VALUES: st.SearchStrategy[Value] = st.recursive(
    _FLAT, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=12
)


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=5))
def test_what_is_written_is_read_again(value: dict[str, Value]) -> None:
    assert yaml.safe_load(yaml_text(value, heading="about\nit")) == value


def test_words_that_readers_take_for_something_else_are_quoted() -> None:
    words: list[Value] = [
        "yes",
        "no",
        "on",
        "off",
        "null",
        "1e3",
        "0x10",
        "12:30:45",
        "2026-01-01",
        "~",
        "",
        "5s",
        "=",
        "a: b",
    ]
    written = yaml_text({"words": words, "each": {f"key{number}": word for number, word in enumerate(words)}})
    read = yaml.safe_load(written)
    assert read["words"] == words
    assert list(read["each"].values()) == words


def test_comments_are_written_where_they_stand() -> None:
    assert yaml_text({Comment("\nwhy"): None, "key": {Comment("how"): None, "inner": 1}}) == (
        "#\n# why\nkey:\n  # how\n  inner: 1\n"
    )
