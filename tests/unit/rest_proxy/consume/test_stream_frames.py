import json

import pytest

from core_broker.client.records import IncomingRecord
from rest_proxy.consume.rendering import RecordRenderer, RecordV2
from rest_proxy.consume.stream_frames import JsonLines, ServerSentEvents, parse_position, position_text
from rest_proxy.errors import ProxyError, unavailable


def record(partition: int, offset: int) -> IncomingRecord:
    return IncomingRecord(
        topic="t", partition=partition, offset=offset, timestamp_ms=0, timestamp_type="", key=None, value=None
    )


def render(record: IncomingRecord) -> RecordV2:
    return RecordV2("t", None, None, record.partition, record.offset)


RENDERER = RecordRenderer(render, lambda record, _: render(record))


def test_the_id_of_an_event_is_the_position_after_it_in_all_partitions() -> None:
    frames = ServerSentEvents(RENDERER, {2: 5, 0: 0, 11: 3})
    assert frames.opening() == b"retry: 1000\nid: 0:0,2:5,11:3\n\n"
    text = frames.records([record(2, 5), record(2, 9), record(0, 0), record(2, 10), record(1, 4)])
    ids = [line.removeprefix("id: ") for line in text.decode().splitlines() if line.startswith("id: ")]
    assert ids == ["0:0,2:6,11:3", "0:0,2:10,11:3", "0:1,2:10,11:3", "0:1,2:11,11:3", "0:1,1:5,2:11,11:3"]
    assert b'"position":"0:1,1:5,2:11,11:3"' in frames.ending("end")


def test_every_event_has_its_record() -> None:
    text = ServerSentEvents(RENDERER, {0: 0, 1: 0}).records([record(0, 3), record(1, 4)]).decode()
    data = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert [(one["partition"], one["offset"]) for one in data] == [(0, 3), (1, 4)]
    assert text.endswith("\n\n")


def test_lines_have_an_end_only_when_something_is_wrong() -> None:
    frames = JsonLines(RENDERER, {0: 0})
    frames.records([record(0, 6)])
    assert (frames.opening(), frames.heartbeat(), frames.ending("end")) == (b"", b"\n", b"")
    last = json.loads(frames.ending("error", unavailable("gone")))
    assert last == {"reason": "error", "position": "0:7", "error_code": 503, "message": "gone"}


def test_positions_are_parsed_as_they_are_written() -> None:
    positions = {0: 17, 1: 0, 2_000_000_000: 10**18 - 1}
    assert parse_position(position_text(positions)) == positions


@pytest.mark.parametrize("text", ["", "0", "0:", "0:1,", "0:-1", "a:1", "0:1;1:2", "0:" + "9" * 19, "٣:1", "\udcff"])
def test_other_positions_are_refused(text: str) -> None:
    with pytest.raises(ProxyError, match="must be partition:offset") as caught:
        parse_position(text)
    assert caught.value.status == 400
    caught.value.message.encode()
