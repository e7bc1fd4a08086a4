import io
import logging
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from core_broker.service.commandline import ServiceArguments, parse_arguments, start
from core_broker.service.settings import INT, ServiceSettings, at_least, setting


class Sample(ServiceSettings):
    IGNORED = {"num.threads": "there is one"}

    size: int = setting(INT, default=1, check=at_least(1))
    """Size."""


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def started_with(arguments: ServiceArguments, environment: dict[str, str]) -> tuple[int, list[int], str]:
    sizes: list[int] = []

    def run(settings: Sample) -> int:
        sizes.append(settings.size)
        return 0

    with redirect_stderr(io.StringIO()) as stderr:
        code = start(Sample, run, arguments, environment=environment, prefix="SAMPLE_")
    return code, sizes, stderr.getvalue()


def test_config_and_set_are_read_in_both_spellings() -> None:
    expected = ServiceArguments(config=Path("a.properties"), assignments=("x=1", "y=2=3"))
    assert parse_arguments(["--config", "a.properties", "--set", "x=1", "--set=y=2=3"]) == expected
    assert parse_arguments(["-c", "a.properties", "--set=x=1", "--set", "y=2=3"]) == expected


@pytest.mark.parametrize("arguments", [["--help"], ["--set"], ["extra"], ["--config"]], ids=str)
def test_anything_else_is_left_to_the_full_command_line(arguments: list[str]) -> None:
    assert parse_arguments(arguments) is None


def test_service_runs_with_settings_of_all_sources() -> None:
    code, sizes, _ = started_with(ServiceArguments(assignments=("size=3",)), {"SAMPLE_SIZE": "2"})
    assert (code, sizes) == (0, [3])


def test_wrong_settings_end_the_service_before_it_runs() -> None:
    code, sizes, stderr = started_with(ServiceArguments(assignments=("size=0",)), {})
    assert (code, sizes) == (2, [])
    assert stderr == "This setting was refused:\n  size=0: must be at least 1\n"


def test_setting_without_effect_is_warned_about() -> None:
    code, sizes, stderr = started_with(ServiceArguments(assignments=("num.threads=4",)), {})
    assert (code, sizes) == (0, [1])
    assert "num.threads" in stderr
    assert "there is one" in stderr
