"""Going on behind what was read."""

from collections.abc import Sequence
from typing import Any

import pytest

from connect.api.errors import ConnectError
from connectors.http.config import HttpSourceConfig
from connectors.http.pagination import Page, PageRequest, Position, Step, pagination_of

URL = "http://api/items"


def asked(config: dict[str, str], position: Position, *replies: Page) -> tuple[Step, list[PageRequest]]:
    """One step, with these replies, and what was asked."""
    given = {"http.request.url": URL, "kafka.topic": "t", **config}
    waiting, questions = list(replies), []

    def ask(question: PageRequest) -> Page:
        questions.append(question)
        return waiting.pop(0)

    step = pagination_of(HttpSourceConfig.parse(given)).step(position, ask)
    assert waiting == [], "fewer questions than expected"
    return step, questions


def reply(records: Sequence[Any], *, following: object = None, link: str = "") -> Page:
    return Page(records, {"next": following}, {"link": link} if link else {}, URL)


def new(step: Step) -> list[Any]:
    return [found.record for found in step.records]


CURSOR = {"http.response.offset.pointer": "/next", "http.request.params": "after=${cursor}"}


def test_a_cursor_goes_on_with_what_the_answer_says() -> None:
    step, questions = asked(CURSOR, {}, reply(["a", "b"], following="c1"))
    assert questions[0].values["cursor"] == ""
    assert [found.position for found in step.records] == [{"cursor": "", "index": 1}, {"cursor": "c1", "index": 0}]
    assert (step.position, step.has_more) == ({"cursor": "c1", "index": 0}, True)


def test_a_restart_in_the_middle_of_an_answer_skips_what_was_read() -> None:
    step, questions = asked(CURSOR, {"cursor": "c1", "index": 1}, reply(["a", "b", "c"], following="c2"))
    assert questions[0].values["cursor"] == "c1"
    assert new(step) == ["b", "c"]


@pytest.mark.parametrize("following", [None, "", "c1", False])
def test_the_last_answer_is_asked_for_again(following: object) -> None:
    step, _ = asked(CURSOR, {"cursor": "c1", "index": 1}, reply(["a", "b"], following=following))
    assert (new(step), step.position, step.has_more) == (["b"], {"cursor": "c1", "index": 2}, False)
    step, _ = asked(CURSOR, step.position, reply(["a", "b", "c"], following=following))
    assert new(step) == ["c"]


def test_a_cursor_may_begin_somewhere_and_be_a_number_or_look_like_a_path() -> None:
    _, questions = asked({**CURSOR, "http.offset.initial": "abc="}, {}, reply([]))
    assert questions[0].values["cursor"] == "abc="
    step, _ = asked(CURSOR, {}, reply(["a"], following=17))
    assert step.position["cursor"] == "17"
    step, _ = asked(CURSOR, {}, reply(["a"], following="/x=="))
    assert step.position["cursor"] == "/x=="


def test_a_next_url_in_the_answer_is_followed() -> None:
    step, _ = asked({"http.response.offset.pointer": "/next"}, {}, reply(["a"], following="/items?page=2"))
    assert step.position["cursor"] == "http://api/items?page=2"
    _, questions = asked({"http.response.offset.pointer": "/next"}, step.position, reply([]))
    assert questions[0].url == "http://api/items?page=2"


def test_a_link_header_is_followed() -> None:
    link = '<http://api/items?page=1>; rel="prev", <http://api/items?page=3>; rel="next"'
    step, _ = asked({"http.pagination.mode": "link"}, {}, reply(["a"], link=link))
    assert step.position["cursor"] == "http://api/items?page=3"


@pytest.mark.parametrize("target", ["http://elsewhere/items", "https://api/items", "//elsewhere/x"])
def test_a_link_to_another_server_is_not_followed(target: str) -> None:
    with pytest.raises(ConnectError, match="another server"):
        asked({"http.pagination.mode": "link"}, {}, reply([], link=f'<{target}>; rel="next"'))


RECORD = {"http.response.record.offset.pointer": "/id", "http.request.params": "after=${offset}"}


def rows(*numbers: int) -> list[dict[str, int]]:
    return [{"id": number} for number in numbers]


def test_the_last_record_says_how_to_go_on() -> None:
    step, questions = asked({**RECORD, "http.offset.initial": "3"}, {}, reply(rows(4, 5)))
    assert questions[0].values["offset"] == "3"
    assert step.position == {"offset": "5", "index": 1}
    _, questions = asked(RECORD, step.position, reply([]))
    assert questions[0].values["offset"] == "5"


def test_an_answer_that_begins_with_what_was_read_is_read_behind_it() -> None:
    step, _ = asked(RECORD, {"offset": "5", "index": 1}, reply(rows(4, 5, 6, 7)))
    assert new(step) == rows(6, 7)
    step, _ = asked(RECORD, step.position, reply(rows(4, 5, 6, 7)))
    assert (new(step), step.has_more) == ([], False)


def test_records_with_the_same_offset_are_told_apart_by_their_number() -> None:
    config = {"http.response.record.offset.pointer": "at=/at", "http.request.params": "since=${offset.at}"}
    records = [{"at": 1, "n": 1}, {"at": 2, "n": 2}, {"at": 2, "n": 3}, {"at": 2, "n": 4}]
    first, _ = asked(config, {}, reply(records[:3]))
    for place, found in enumerate(first.records, 1):
        step, questions = asked(config, found.position, reply(records))
        assert [item["n"] for item in new(step)] == [item["n"] for item in records[place:]]
        assert questions[0].values["offset.at"] == str(found.record["at"])


def test_a_record_without_an_offset_is_bad_and_the_others_are_not() -> None:
    step, _ = asked(RECORD, {}, reply([{"id": 1}, {"x": 2}, {"id": 3}]))
    assert [found.error is None for found in step.records] == [True, False, True]
    assert step.records[1].position == {"offset": "1", "index": 1}
    assert step.position == {"offset": "3", "index": 1}


def test_an_offset_counts_records() -> None:
    config = {"http.request.params": "offset=${offset}&limit=2"}
    step, _ = asked(config, {}, reply(["a", "b"]))
    assert [found.position for found in step.records] == [{"offset": 1}, {"offset": 2}]
    _, questions = asked(config, step.position, reply([]))
    assert questions[0].values["offset"] == "2"


PAGE = {"http.request.params": "page=${page}"}


def test_a_page_that_grows_is_read_to_its_end_before_the_next_one() -> None:
    step, questions = asked(PAGE, {}, reply(["a", "b"]))
    assert questions[0].values["page"] == "1"
    assert step.position == {"page": 1, "index": 2}
    step, _ = asked(PAGE, step.position, reply(["a", "b", "c"]))
    assert new(step) == ["c"]
    step, questions = asked(PAGE, step.position, reply(["a", "b", "c"]), reply([]))
    assert ([question.values["page"] for question in questions], step.has_more) == (["1", "2"], False)
    step, questions = asked(PAGE, step.position, reply(["a", "b", "c"]), reply(["e"]), reply(["a", "b", "c", "d"]))
    assert new(step) == ["d"]
    step, _ = asked(PAGE, step.position, reply(["a", "b", "c", "d"]), reply(["e"]), reply(["a", "b", "c", "d"]))
    assert (new(step), step.position) == (["e"], {"page": 2, "index": 1})


def test_without_a_way_to_go_on_everything_is_read_each_time() -> None:
    step, _ = asked({}, {}, reply(["a"]))
    step, _ = asked({}, step.position, reply(["a"]))
    assert (new(step), step.position, step.has_more) == (["a"], {"times": 2}, False)
