"""Dead letters as users name them: PARTITION-OFFSET, or what they have in common."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

_PLACE: Final = re.compile(r"(\d{1,10})[-:](\d{1,19})")

PlacesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PARTITION-OFFSET]...", help="These ones, as `caudal dlq list` names them.", show_default=False
    ),
]


def parse_letter_place(text: str) -> tuple[int, int]:
    """Read `PARTITION-OFFSET`, or with a colon as records are named elsewhere; raises BadParameter."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} must look like PARTITION-OFFSET, e.g. 0-17")
    return int(match[1]), int(match[2])


def chosen(
    places: Sequence[tuple[int, int]], *, everything: bool, narrowed: Mapping[str, str | int | None]
) -> dict[str, Any]:
    """The selection that a worker is asked for; raises BadParameter when nothing is chosen."""
    selection: dict[str, Any] = {key: value for key, value in narrowed.items() if value is not None}
    if places:
        selection["offsets"] = [{"partition": partition, "offset": offset} for partition, offset in places]
    if everything and selection:
        raise typer.BadParameter("--all means all: leave the places and filters out", param_hint="--all")
    if everything:
        return {"all": True}
    if not selection:
        raise typer.BadParameter("say which ones: places such as 0-17, --stage, --exception, --from, --to, or --all")
    return selection
