"""Dead letters are looked at and given to their sinks again over REST."""

from typing import Any

import pytest

from connect.runtime.redrive.pages import LetterPlace, Selection
from tests.support.connect_api import Api


async def test_dead_letters_are_told_with_why_they_failed(api: Api) -> None:
    page = (await api.get("/connectors/one/dlq")).json()
    assert page["topic"] == "dead"
    (letter,) = page["records"]
    assert letter["error"] == {
        "stage": "VALUE_CONVERTER",
        "class": "x.Json",
        "exception": "x.DataException",
        "message": None,
        "stacktrace": None,
        "topic": None,
        "partition": None,
        "offset": None,
        "connector": None,
        "task": 0,
    }
    assert (letter["headers"], letter["value"], letter["redriven"]) == ([["a", "b"]], "{", False)
    assert api.letters.asked == [("one", 100, None, None, None, None)]


async def test_some_of_them_can_be_asked_for(api: Api) -> None:
    await api.get("/connectors/one/dlq?limit=5&partition=1&offset=7&stage=TASK_PUT&exception=X")
    assert api.letters.asked == [("one", 5, 1, 7, "TASK_PUT", "X")]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "partition=-1", "offset=-1"])
async def test_what_cannot_be_asked_for_is_refused(api: Api, query: str) -> None:
    assert (await api.get(f"/connectors/one/dlq?{query}")).status_code == 400


@pytest.mark.parametrize(
    ("body", "selection", "most", "dry"),
    [
        ({"selection": {"all": True}}, Selection(is_all=True), 1000, False),
        (
            {"selection": {"offsets": [{"partition": 0, "offset": 5}]}, "max_records": 7, "dry_run": True},
            Selection(offsets=[LetterPlace(partition=0, offset=5)]),
            7,
            True,
        ),
        (
            {"selection": {"stage": "TASK_PUT", "exception": "X", "from_offset": 0, "to_offset": 9, "partition": 1}},
            Selection(stage="TASK_PUT", exception="X", from_offset=0, to_offset=9, partition=1),
            1000,
            False,
        ),
    ],
)
async def test_dead_letters_are_given_again(
    api: Api, body: dict[str, Any], selection: Selection, most: int, *, dry: bool
) -> None:
    answer = await api.post("/connectors/one/dlq/redrive", json=body)
    assert (answer.status_code, answer.json()) == (
        200,
        {"redriven": 1, "skipped": 0, "records": [{"partition": 0, "offset": 5}], "failed": []},
    )
    assert api.letters.asked == [("one", selection, most, dry)]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"selection": {}},
        {"selection": {"all": False}},
        {"selection": {"al": True}},
        {"selection": {"all": True}, "max_records": 0},
        {"selection": {"offsets": [{"partition": 0}]}},
        {"selection": {"offsets": [{"partition": 0, "offset": -1}]}},
    ],
)
async def test_who_does_not_say_which_is_refused(api: Api, body: dict[str, Any]) -> None:
    answer = await api.post("/connectors/one/dlq/redrive", json=body)
    assert answer.status_code == 400
    assert api.letters.asked == []
