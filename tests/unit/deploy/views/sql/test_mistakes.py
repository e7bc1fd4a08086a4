from deploy.views.sql.mistakes import Mistake, excerpt, mistakes
from streams.sql.language.script import read_script
from streams.sql.language.source import Source


def test_mistakes_have_lines_and_columns() -> None:
    text = "SHOW TOPICS;\nDROP STREM s;"
    found = mistakes(Source(text), read_script(text))
    assert [(mistake.line, mistake.column, mistake.end_line, mistake.end_column) for mistake in found] == [
        (2, 6, 2, 11)
    ]


def test_a_long_line_is_shown_around_the_mistake() -> None:
    source = Source("a" * 1000 + "XY" + "b" * 1000)
    part = excerpt(source, Mistake(1, 1001, 1, 1003, "..."))
    assert part.before == "..." + "a" * 100
    assert part.marked == "XY"
    assert part.after == "b" * 100


def test_a_mistake_of_several_lines_is_marked_in_the_first() -> None:
    part = excerpt(Source("a bc\nde"), Mistake(1, 3, 2, 2, "..."))
    assert (part.before, part.marked, part.after) == ("a ", "bc", "")


def test_a_mistake_at_the_end_has_a_mark() -> None:
    part = excerpt(Source("ab"), Mistake(1, 3, 1, 3, "..."))
    assert (part.before, part.marked, part.after) == ("ab", "", "")
