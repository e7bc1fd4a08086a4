from hypothesis import given
from hypothesis import strategies as st

from streams.sql.language.source import Place, Source


def test_lines_and_columns_are_counted_from_one() -> None:
    source = Source("ab\n\ncd")
    assert [source.position(offset) for offset in range(7)] == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2), (3, 3)]
    assert source.position(100) == (3, 3)
    assert [source.line(number) for number in (1, 2, 3)] == ["ab", "", "cd"]
    assert source.slice(Place(1, 5)) == "b\n\nc"


def test_lines_may_end_as_on_windows() -> None:
    assert Source("ab\r\ncd").line(1) == "ab"


@given(st.text(st.sampled_from("a\n\r"), max_size=20), st.integers(0, 20))
def test_a_position_leads_back_to_its_offset(text: str, offset: int) -> None:
    if offset > len(text):
        return
    line, column = Source(text).position(offset)
    before = text.split("\n")[: line - 1]
    assert sum(len(item) + 1 for item in before) + column - 1 == offset
