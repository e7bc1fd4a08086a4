import pytest

from deploy.clients.sql import StatementRefused
from deploy.views.sql.mistakes import Mistake
from deploy.views.sql.refusals import mistake_of, steps_of
from streams.sql.language.source import Place, Source

TEXT = "SHOW STREAMS;\nSELECT a,\n  `b c`\nFROM s EMIT CHANGES;"
PLACE = Place(14, len(TEXT) - 1)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "Line: 1, Col: 8: SELECT column 'A' cannot be resolved.",
            Mistake(2, 8, 2, 9, "SELECT column 'A' cannot be resolved."),
        ),
        ("line 2:3: Syntax Error\nno such name", Mistake(3, 3, 3, 8, "Syntax Error no such name")),
        ("Failed: Line: 3, Col: 6: S does not exist.", Mistake(4, 6, 4, 7, "Failed: S does not exist.")),
        ("no place", None),
        ("Line: 9, Col: 1: beyond", None),
        ("Line: 1, Col: 999: beyond", None),
    ],
)
def test_a_place_in_a_statement_is_one_in_the_whole_text(message: str, expected: Mistake | None) -> None:
    assert mistake_of(StatementRefused(message), Source(TEXT), PLACE) == expected


def test_a_statement_within_a_line_begins_there() -> None:
    found = mistake_of(StatementRefused("line 1:6: no"), Source("a; SHOW x;"), Place(3, 9))
    assert found == Mistake(1, 9, 1, 10, "no")


def test_what_to_do_is_known_for_some_codes() -> None:
    assert "schema registry" in steps_of(StatementRefused("no", code=42801))[0]
    assert steps_of(StatementRefused("no", code=1)) == []
