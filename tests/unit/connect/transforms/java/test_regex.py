import pytest

from connect.api.errors import ConfigError
from connect.transforms.java.regex import Rename, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"(?<a>x+)-\k<a>", "xx-xx", True),
        (r"\Qa.b\E.*", "a.bc", True),
        (r"\Qa.b\E.*", "aXbc", False),
        (r"\Qa.b", "a.b", True),
        (r"\p{Alpha}+[\p{Digit}_]+", "ab1_", True),
        (r"\P{Alpha}+", "12", True),
        (r"[^a-c]+", "xyz", True),
        (r"[]a]+", "]a", True),
        (r"(?i)ORDERS", "orders", True),
        (r"a(?i)BC(d)", "abcD", True),
        (r"a(b(?i)C)d", "abcD", False),
        (r"(?i:A)b", "ab", True),
        (r"(?iu)ä", "ä", True),
        (r"\d+", "١", False),
        (r"a\z", "a", True),
        (r"\w++", "abc", True),
        (r"(?!x)y", "y", True),
        (r"(?<=a)b|c", "c", True),
        (r"[\[\]\-]+", "[-]", True),
        (r"a{2,3}", "aaa", True),
        (r"[a||~~b&]+", "|~&", True),
        (r"[+--]+", "+,-", True),
        (r"a\Z", "a", True),
    ],
)
def test_patterns_of_java_match_as_there(pattern: str, text: str, matches: bool) -> None:
    assert (compile_pattern(pattern).fullmatch(text) is not None) is matches


@pytest.mark.parametrize("pattern", ["(", "[a-z&&[^b]]", "[a[b]]", r"\p{IsGreek}", "a**", "[a", "(?<1a>x)"])
def test_patterns_that_cannot_be_translated_are_refused_with_their_option(pattern: str) -> None:
    with pytest.raises(ConfigError, match="for configuration pattern"):
        compile_pattern(pattern, "pattern")


@pytest.mark.parametrize(
    ("regex", "replacement", "name", "expected"),
    [
        ("foo", "bar", "foo", "bar"),
        ("foo", "bar", "orig", None),
        ("(.*)", "$1", "orig", "orig"),
        ("(.*)", "prefix-$1", "orig", "prefix-orig"),
        ("(.*)", "$1-suffix", "orig", "orig-suffix"),
        (r"(.*)-(\d\d\d\d\d\d\d\d)", "$1", "index-20160117", "index"),
        ("(?<name>.*)", "x.${name}", "a", "x.a"),
        ("(.*)", "$10", "a", "a0"),
        ("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)", "$10$1", "abcdefghij", "ja"),
        ("(a)|(b)", "[$1$2]", "b", "[b]"),
        ("a", r"\$1\\", "a", "$1\\"),
        ("a", "$0$0", "a", "aa"),
        ("a|ab", "x", "ab", "xb"),
    ],
)
def test_names_that_match_as_a_whole_get_the_replacement(
    regex: str, replacement: str, name: str, expected: str | None
) -> None:
    assert Rename(regex, replacement)(name) == expected


@pytest.mark.parametrize("replacement", ["$2", "$", "a$b", "${none}", "a\\"])
def test_replacements_that_do_not_fit_the_pattern_are_refused(replacement: str) -> None:
    with pytest.raises(ConfigError, match="for configuration replacement"):
        Rename("(.*)", replacement)
