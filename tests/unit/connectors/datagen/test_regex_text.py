"""Texts drawn from a regular expression match it."""

import random
import re

import pytest

from connect.api.errors import ConfigError
from connectors.datagen.regex_text import drawer_of


@pytest.mark.parametrize(
    "pattern",
    [
        "User_[1-9]{0,1}",
        "[A-Z][a-z]{3,8}(\\.|-)[0-9]+",
        "(a|bc|(d|e)?)f*",
        "\\d{3}-\\w+\\s\\D",
        "[^a-z]{5}",
        "[-+]?[0-9a-fA-F]{2,}",
        "a.c",
        "(?:02)(:[0-9a-f]{2}){5}",
        "^anchored$",
        "[\\]\\-x]",
        "",
    ],
)
def test_texts_match(pattern: str) -> None:
    chance = random.Random(1)
    draw = drawer_of(pattern)
    for _ in range(200):
        text = draw(chance)
        assert re.fullmatch(pattern, text), text


@pytest.mark.parametrize("pattern", ["(", "a)", "[", "[]", "*", "a{x}", "a{3,2}", "a{99999}", "[z-a]", "\\", "(" * 60])
def test_what_is_not_understood_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="regex"):
        drawer_of(pattern)
