import time

import pytest

from schema_registry.formats.json_patterns import (
    MAX_PATTERN_CHARS,
    MAX_PATTERNS,
    SchemaPatterns,
    matches,
    numbered,
    pattern_fault,
)
from tests.support.patience import PATIENCE_S


@pytest.mark.parametrize(
    "pattern",
    [
        *("^[a-z]+$", r"\d{3}-\d{4}", r"^\p{L}+$", "(?<year>[0-9]{4})", "^(?!x)a", r"(?<=a)b", r"(a)\1"),
        *("(?=[[a])b", "(?=[^[a])", "(?=[+--b&&c~~d||e])", r"(?=\[[)])"),  # Python warns, and warnings fail tests
        *(r"(?<n>a)\k<n>", r"^(?=.*\p{Lu}).{8,}$", r"\/", r"[\w.-]+@[\w-]+", "(a+)+$", "", "[[a]", r"\cJ"),
    ],
)
def test_a_regular_expression_has_no_fault(pattern: str) -> None:
    assert pattern_fault(pattern) is None


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "*a", "(?<", "\\", "(?=", "x" * (MAX_PATTERN_CHARS + 1)])
def test_an_invalid_regular_expression_has_a_fault(pattern: str) -> None:
    assert pattern_fault(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        ("^S_", "S_1", True),
        ("^S_", "xS_1", False),
        ("S_", "xS_1", True),
        (r"^\p{Lu}", "Ä", True),
        ("^(?!x)", "a", None),
        (r"(a)\1", "aa", None),
    ],
)
def test_a_match_is_known_unless_it_needs_backtracking(pattern: str, text: str, is_match: bool | None) -> None:
    assert matches(pattern, text) is is_match


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a|b|ab)*c", "((a{1,100}){1,100}){1,100}$", "(" * 4_000 + ")" * 4_000]
)
def test_patterns_that_explode_elsewhere_are_checked_and_matched_in_no_time(pattern: str) -> None:
    started = time.process_time()

    pattern_fault(pattern)
    matches(pattern, "a" * 5_000 + "!")

    assert time.process_time() - started < PATIENCE_S


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"(a)\1", r"(a)\1"),
        (r"(x)(?<n>a)\k<n>1", r"(x)(?<n>a)(?:\2)1"),
        (r"(?<n>a)(?<m>b)\k<m>", r"(?<n>a)(?<m>b)(?:\2)"),
    ],
)
def test_references_to_groups_by_name_become_references_by_number(pattern: str, expected: str) -> None:
    assert numbered(pattern) == expected


@pytest.mark.parametrize("pattern", [r"\p{L}{1,100}%d", r"(a{1,90}){1,9}%d", r"(?=a)(((a{1,90}){1,9}))[a-z\d]+%d"])
def test_a_schema_cannot_have_so_many_costly_patterns_that_it_takes_long(pattern: str) -> None:
    patterns = SchemaPatterns()
    started = time.process_time()
    faults = [patterns.fault(pattern % number) for number in range(5_000)]
    assert time.process_time() - started < PATIENCE_S
    assert faults[:MAX_PATTERNS] == [None] * MAX_PATTERNS
    assert faults[MAX_PATTERNS] == "the schema has more than 500 patterns, or 100000 characters of them"


def test_a_pattern_that_is_there_many_times_counts_once() -> None:
    patterns = SchemaPatterns()
    assert {patterns.fault("^[a-z]+$") for _ in range(5_000)} == {None}


def test_a_schema_cannot_have_patterns_of_any_length_in_all() -> None:
    patterns = SchemaPatterns()
    faults = [patterns.fault(f"{number}(?=a)" + "[a-z]|" * 1_500) for number in range(12)]
    assert faults[0] is None
    assert faults[-1] == "the schema has more than 500 patterns, or 100000 characters of them"
