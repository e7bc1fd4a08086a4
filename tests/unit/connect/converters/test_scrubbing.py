"""Names made into ones that a format allows, as Confluent's converters do it."""

import pytest

from connect.converters.scrubbing import scrubbed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", ""),
        ("abc_DEF_123", "abc_DEF_123"),
        ("abc+-.*_", "abc_2B____"),
        ("abc-def", "abc_def"),
        ("abc+def", "abc_2Bdef"),
        ("abc  def", "abc__def"),
        ("abc.def", "abc_def"),
        ("0abc.def", "x0abc_def"),
        ("0abc", "x0abc"),
        ("_abc", "_abc"),
        ("é", "_C3_A9"),
    ],
)
def test_a_name_is_scrubbed(name: str, expected: str) -> None:
    assert scrubbed(name) == expected


def test_protobuf_refuses_an_underscore_at_the_beginning() -> None:
    assert scrubbed("_abc.def", refused_first="0123456789_") == "x_abc_def"
