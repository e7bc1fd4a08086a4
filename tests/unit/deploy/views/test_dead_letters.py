import pytest

from deploy.views.dead_letters import parse_letter


@pytest.mark.parametrize("text,place", [("0-17", (0, 17)), ("3:0", (3, 0))])
def test_a_place_is_partition_and_offset(text: str, place: tuple[int, int]) -> None:
    assert parse_letter(text) == place


@pytest.mark.parametrize("text", ["17", "0-", "-1-2", "a-b", "0-17-3", ""])
def test_text_of_another_shape_is_no_place(text: str) -> None:
    with pytest.raises(ValueError, match="must look like PARTITION-OFFSET"):
        parse_letter(text)
