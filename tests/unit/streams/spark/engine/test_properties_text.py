from hypothesis import given
from hypothesis import strategies as st

from core_broker.service.properties import parse_properties
from streams.spark.engine.properties_text import properties_text

_SETTABLE = st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")) | st.sampled_from(" \t\n\r\f\\=:#!é漢")
KEYS = st.text(st.sampled_from("abc.-_ =:#!\\"), min_size=1, max_size=12).filter(lambda key: key.strip() == key)
VALUES = st.text(_SETTABLE, max_size=30).filter(lambda value: value.strip() == value)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_what_is_written_is_read_again(values: dict[str, str]) -> None:
    assert parse_properties(properties_text(values)) == values


def test_a_line_is_as_a_person_would_write_it() -> None:
    assert properties_text({"spark.b": "x=y", "spark.a": "1"}) == "spark.a=1\nspark.b=x=y\n"
