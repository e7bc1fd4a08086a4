import pytest

from connect.api.config import LOWER_CASE, UPPER_CASE, Config, Problem, one_of, option
from connect.api.errors import ConfigError


class ModeConfig(Config):
    mode: str = option(LOWER_CASE, default="fast", check=one_of("fast", "slow"))
    method: str = option(UPPER_CASE, default="GET", check=one_of("GET", "PUT"))


def test_the_case_of_a_choice_does_not_matter() -> None:
    config = ModeConfig.parse({"mode": "SLOW", "method": "put"})
    assert (config.mode, config.method) == ("slow", "PUT")


def test_a_problem_with_an_invalid_value_reads_like_the_error_of_an_option() -> None:
    with pytest.raises(ConfigError) as raised:
        ModeConfig.parse({"mode": "odd"})
    assert str(raised.value) == Problem.invalid("mode", "odd", "must be one of fast, slow").message
