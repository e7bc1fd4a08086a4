import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from core_broker.service.logs import TextFormatter, configure


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_json_line_has_data_beside_the_message() -> None:
    stream = io.StringIO()
    configure(style="json", stream=stream)
    logging.getLogger("core_broker.log.segment").info("segment rolled", extra={"topic": "orders", "partition": 3})
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "INFO",
        "logger": "core_broker.log.segment",
        "message": "segment rolled",
        "topic": "orders",
        "partition": 3,
    }


def test_json_line_holds_the_traceback_in_one_line() -> None:
    stream = io.StringIO()
    configure(style="json", stream=stream)
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("x").exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert "ValueError: no" in json.loads(stream.getvalue())["exception"]


def test_text_line_reads_like_a_sentence_with_its_data() -> None:
    record = logging.makeLogRecord({"name": "core_broker.log.segment", "levelname": "INFO", "msg": "segment rolled"})
    record.topic, record.note = "orders", "two words"
    assert TextFormatter().format(record).endswith("INFO    log.segment: segment rolled  topic=orders note='two words'")


def test_auto_style_writes_json_where_nobody_watches() -> None:
    stream = io.StringIO()
    configure(stream=stream)
    logging.getLogger("x").warning("careful")
    assert json.loads(stream.getvalue())["message"] == "careful"


def test_level_hides_what_is_below() -> None:
    stream = io.StringIO()
    configure(level="WARNING", style="text", stream=stream)
    logging.getLogger("x").info("hidden")
    assert stream.getvalue() == ""


def test_unserialisable_data_does_not_lose_the_line() -> None:
    stream = io.StringIO()
    configure(style="json", stream=stream)
    logging.getLogger("x").info("odd", extra={"thing": sys})
    assert "module" in json.loads(stream.getvalue())["thing"]
