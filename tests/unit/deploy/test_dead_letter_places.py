import pytest
import typer

from deploy.dead_letter_places import chosen, parse_letter_place

NOTHING: dict[str, str | int | None] = {"stage": None, "from_offset": None}


@pytest.mark.parametrize("text,place", [("0-17", (0, 17)), ("3:0", (3, 0))])
def test_a_place_is_partition_and_offset(text: str, place: tuple[int, int]) -> None:
    assert parse_letter_place(text) == place


@pytest.mark.parametrize("text", ["17", "0-", "-1-2", "a-b", "0-17-3", ""])
def test_what_is_no_place_is_told(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="must look like PARTITION-OFFSET"):
        parse_letter_place(text)


def test_a_selection_holds_what_was_given() -> None:
    assert chosen([], everything=True, narrowed=NOTHING) == {"all": True}
    assert chosen([(0, 17)], everything=False, narrowed={**NOTHING, "stage": "TASK_PUT"}) == {
        "stage": "TASK_PUT",
        "offsets": [{"partition": 0, "offset": 17}],
    }
    assert chosen([], everything=False, narrowed={**NOTHING, "from_offset": 0}) == {"from_offset": 0}


def test_nothing_or_all_and_some_is_no_selection() -> None:
    with pytest.raises(typer.BadParameter, match="say which ones"):
        chosen([], everything=False, narrowed=NOTHING)
    with pytest.raises(typer.BadParameter, match="all means all"):
        chosen([(0, 1)], everything=True, narrowed=NOTHING)
