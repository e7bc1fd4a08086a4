"""Loggers are changed while the worker runs, and tell since when."""

import logging
from collections.abc import Iterator

import pytest

from connect.runtime.errors import BadRequest, NotFound
from connect.runtime.loggers import LoggerLevel, Loggers
from core_broker.service.clock import ManualClock


@pytest.fixture
def loggers() -> Iterator[Loggers]:
    for name in ("caudal_test", "caudal_test.a", "caudal_test.a.b", "caudal_testing"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    known = [logging.getLogger(), *map(logging.getLogger, logging.Logger.manager.loggerDict)]
    levels = [logger.level for logger in known]
    yield Loggers(ManualClock(1000))
    for logger, level in zip(known, levels, strict=True):  # the root's level becomes that of all, of other tests' too
        logger.setLevel(level)


def test_a_logger_is_changed_with_all_below_it(loggers: Loggers) -> None:
    affected = loggers.set_level("caudal_test", "debug")
    assert affected == ["caudal_test", "caudal_test.a", "caudal_test.a.b"]
    assert logging.getLogger("caudal_test.a.b").level == logging.DEBUG
    assert logging.getLogger("caudal_testing").level == logging.NOTSET
    assert loggers.level("caudal_test.a") == LoggerLevel(level="DEBUG", last_modified=1000)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("TRACE", "TRACE"),
        ("info", "INFO"),
        ("WARN", "WARN"),
        ("WARNING", "WARN"),
        ("ERROR", "ERROR"),
        ("FATAL", "FATAL"),
        ("CRITICAL", "FATAL"),
        ("OFF", "OFF"),
    ],
)
def test_levels_have_kafka_connects_names(loggers: Loggers, given: str, shown: str) -> None:
    loggers.set_level("caudal_test", given)
    assert loggers.level("caudal_test").level == shown


def test_a_logger_that_is_off_tells_nothing(loggers: Loggers) -> None:
    loggers.set_level("caudal_test", "OFF")
    assert not logging.getLogger("caudal_test").isEnabledFor(logging.CRITICAL)


def test_loggers_with_a_level_of_their_own_are_listed(loggers: Loggers) -> None:
    loggers.set_level("caudal_test.a", "ERROR")
    listed = loggers.levels()
    assert "root" in listed
    assert listed["caudal_test.a"] == LoggerLevel(level="ERROR", last_modified=1000)
    assert "caudal_test" not in listed


def test_the_level_of_the_root_is_that_of_all(loggers: Loggers) -> None:
    assert {"root", "caudal_test"} <= set(loggers.set_level("Root", "WARN"))
    assert loggers.level("root").level == "WARN"


def test_what_is_unknown_is_told(loggers: Loggers) -> None:
    with pytest.raises(NotFound, match=r"Logger caudal_nothing not found\."):
        loggers.level("caudal_nothing")
    with pytest.raises(NotFound, match=r"invalid log level 'LOUD'\."):
        loggers.set_level("caudal_test", "LOUD")
    with pytest.raises(BadRequest):
        loggers.set_level("x" * 501, "INFO")
