"""`caudal schema diff`: what changed between two schemas, and what that breaks."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from deploy import completion_values as values
from deploy.options import Output, OutputOption
from deploy.registry_options import (
    DEFAULT_REGISTRY,
    RegistryConfigOption,
    RegistryOption,
    RegistryPropertiesOption,
    RegistryTimeoutOption,
    UserOption,
    registry_client,
)
from deploy.schema_diff import Change, Direction
from deploy.schema_files import (
    EXTENSIONS,
    ReferencesOption,
    TypeOption,
    name_of,
    parse_place,
    pretty,
    read_definition,
    stored,
)
from deploy.schema_judgement import Judgement, swapped

if TYPE_CHECKING:
    from schema_registry.client.models import RegisteredSchema, SchemaDefinition
    from schema_registry.client.registry_client import RegistryClient
    from schema_registry.formats.schema import SchemaType

EPILOG = """Examples:

caudal schema diff orders-value@1 orders-value@2

caudal schema diff orders-value order.avsc

caudal schema diff orders-value                    (the last two versions)

What is compatible is for the registry to say: + added, - removed, ~ changed, and beside it what that breaks:
backward (new schemas read old records), forward (old ones read new records), full (the registry asked both ways)."""

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_WAYS = {
    ("backward", True): "{new} reads what was written with {old}",
    ("backward", False): "{new} cannot read all that was written with {old}",
    ("forward", True): "{old} reads what is written with {new}",
    ("forward", False): "{old} cannot read all that is written with {new}",
    ("full", True): "{old} and {new} read each other's records",
    ("full", False): "{old} and {new} cannot read all of each other's records",
}


class _Side(msgspec.Struct, frozen=True):
    """One of the two schemas; `registered` unless it comes from a file."""

    name: str
    definition: "SchemaDefinition"
    registered: "RegisteredSchema | None" = None


class _Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All that there is to tell about two schemas."""

    old: _Side
    new: _Side
    level: str
    changes: list[Change] | None
    """None when a schema cannot be taken apart; `trouble` tells why."""
    trouble: str
    judgements: dict[Direction, Judgement]
    lines: list[str]


def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="SUBJECT[@VERSION]",
            help="The schema that was there.",
            show_default=False,
            autocompletion=values.subjects,
        ),
    ],
    new: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUBJECT[@VERSION]|FILE|-]",
            help="The schema that follows: another version, or a file.",
            show_default=False,
            autocompletion=values.subjects,
        ),
    ] = None,
    *,
    schema_type: TypeOption = None,
    reference: ReferencesOption = None,
    output: OutputOption = Output.TABLE,
    registry: RegistryOption = DEFAULT_REGISTRY,
    user: UserOption = None,
    properties: RegistryPropertiesOption = None,
    client_config: RegistryConfigOption = None,
    timeout: RegistryTimeoutOption = 10.0,
) -> None:
    """Show what changed between two schemas, and what that breaks."""
    from deploy.output import waiting

    client = registry_client(registry, user, properties, client_config, timeout)
    with client, waiting("comparing"):
        before, after = _sides(client, old, new, schema_type, reference)
        compared = _compared(client, before, after)
    if output is Output.JSON:
        _print_json(compared)
    else:
        _print(compared)


def _sides(
    client: "RegistryClient",
    old: str,
    new: str | None,
    schema_type: "SchemaType | None",
    references: list[str] | None,
) -> tuple[_Side, _Side]:
    if new is None:
        subject = parse_place(old).subject
        versions = sorted(client.versions(subject))
        if len(versions) < 2 or parse_place(old).version is not None:
            raise typer.BadParameter(f"say what to compare {old} with: another version or a file")
        return _registered(client, f"{subject}@{versions[-2]}"), _registered(client, f"{subject}@{versions[-1]}")
    is_file = new == "-" or schema_type is not None or Path(new).suffix in EXTENSIONS or Path(new).is_file()
    if not is_file:
        return _registered(client, old), _registered(client, new)
    definition = read_definition(new, schema_type, references)
    before = _registered(client, old)
    if not definition.references and before.definition.schema_type is definition.schema_type:
        # A file does not say what it mentions; most likely what the version before it did.
        definition = msgspec.structs.replace(definition, references=before.definition.references)
    return before, _Side("stdin" if new == "-" else new, definition)


def _registered(client: "RegistryClient", text: str) -> _Side:
    subject, version = parse_place(text)
    found = client.version(subject, "latest" if version is None else version)
    return _Side(name_of(found), found.definition, found)


def _compared(client: "RegistryClient", old: _Side, new: _Side) -> _Comparison:
    from deploy.schema_diff import compare, marked, text_diff
    from deploy.schema_elements import Unreadable, elements
    from deploy.schema_judgement import level_of

    assert old.registered is not None
    level = level_of(client, old.registered.subject or "")
    judgements = _judgements(client, old, new, level)
    changes: list[Change] | None = None
    trouble = ""
    try:
        if old.definition.schema_type != new.definition.schema_type:
            raise Unreadable(f"one is {old.definition.schema_type}, the other {new.definition.schema_type}")
        changes = compare(
            *(elements(side.definition, partial(client.references, side.definition)) for side in (old, new))
        )
        for direction, judged in judgements.items():
            changes = marked(changes, judged.clashes, direction)
    except Unreadable as error:
        trouble = str(error)
    lines = text_diff(_text(client, old), _text(client, new), old_name=old.name, new_name=new.name)
    return _Comparison(
        old=old, new=new, level=level, changes=changes, trouble=trouble, judgements=judgements, lines=lines
    )


def _text(client: "RegistryClient", side: _Side) -> str:
    """The text as registries store it: how a file is laid out is no difference."""
    if side.registered is None:
        with suppress(ImportError, ValueError):
            return pretty(stored(side.definition, partial(client.references, side.definition)))
    return pretty(side.definition)


def _judgements(client: "RegistryClient", old: _Side, new: _Side, level: str) -> dict[Direction, Judgement]:
    """What the registry says in every direction that it can be asked about.

    A registry judges what it is given against what it has, in the direction of the level. With two registered schemas
    the roles can be swapped, which gives the other direction; a file can only be what is given.
    """
    ways: dict[str, tuple[Direction, Direction]] = {
        "BACKWARD": ("backward", "forward"),
        "FORWARD": ("forward", "backward"),
        "FULL": ("full", "full"),
    }
    directions = ways.get(level.removesuffix("_TRANSITIVE"))
    if directions is None:
        return {}
    found: dict[Direction, Judgement] = {directions[0]: _judged(client, old, new)}
    if new.registered is not None and directions[1] not in found:
        found[directions[1]] = swapped(_judged(client, new, old))
    return found


def _judged(client: "RegistryClient", earlier: _Side, given: _Side) -> Judgement:
    from deploy.schema_judgement import ask

    assert earlier.registered is not None
    return ask(
        client, earlier.registered.subject or "", given.definition, version=earlier.registered.version or "latest"
    )


def _print_json(compared: _Comparison) -> None:
    from deploy.output import print_json

    changes = None
    if compared.changes is not None:
        changes = [
            {key: value for key, value in msgspec.structs.asdict(change).items() if key != "paths"}
            for change in compared.changes
        ]
    print_json(
        {
            "old": compared.old.name,
            "new": compared.new.name,
            "level": compared.level,
            "changes": changes,
            "compatibility": {
                direction: {
                    "compatible": judged.is_compatible,
                    "differences": judged.clashes,
                }
                for direction, judged in compared.judgements.items()
            },
            "text": compared.lines,
        }
    )


def _print(compared: _Comparison) -> None:
    from deploy.output import note

    if not compared.lines and not compared.changes and not compared.trouble:
        note(f"{compared.old.name} and {compared.new.name} are the same")
        return
    _print_changes(compared)
    _print_judgements(compared)
    _print_lines(compared.lines)


def _print_changes(compared: _Comparison) -> None:
    from rich.markup import escape

    from deploy.output import note, out

    if compared.changes is None:
        note(f"the structures cannot be compared: {escape(compared.trouble)}")
        return
    out.print(f"\n[bold]{escape(compared.old.name)} → {escape(compared.new.name)}[/]")
    if not compared.changes:
        out.print("  [dim]nothing that records depend on[/]")
    width = max((len(f"{change.kind} {change.name}") for change in compared.changes), default=0)
    for change in compared.changes:
        sign, colour = _SIGNS[change.change]
        name, shown = f"{change.kind} {change.name}", _values(change)
        breaks = "".join(f"  [red]✗ {direction}[/]" for direction in change.breaks)
        beside = f"  {escape(shown)}{breaks}".rstrip()
        out.print(f"  [{colour}]{sign} {escape(name.ljust(width) if beside else name)}[/]{beside}")


def _values(change: Change) -> str:
    """`int → long`, or the one value that there is."""
    values = [value for value in (change.before, change.after) if value is not None]
    return " → ".join(dict.fromkeys(values))


def _print_judgements(compared: _Comparison) -> None:
    from rich.markup import escape

    from deploy.output import out

    out.print(f"\n[bold]Compatibility[/]  [dim]the registry's word; level {escape(compared.level)}[/]")
    if not compared.judgements:
        out.print("  [dim]at this level the registry judges nothing[/]")
    for direction, judged in compared.judgements.items():
        mark = "[green]✓[/]" if judged.is_compatible else "[red]✗[/]"
        way = _WAYS[direction, judged.is_compatible].format(old=compared.old.name, new=compared.new.name)
        out.print(f"  {mark} [bold]{direction.ljust(8)}[/]  {escape(way)}")
        for clash in judged.clashes:
            kind = f"[red]{escape(clash.type)}[/]  " if clash.type else ""
            out.print(f"      {kind}{escape(clash.words)}")


def _print_lines(lines: list[str]) -> None:
    from rich.markup import escape

    from deploy.output import out

    colours = {"+": "green", "-": "red", "@": "cyan"}
    out.print()
    for line in lines:
        colour = "bold" if line.startswith(("+++", "---")) else colours.get(line[:1])
        out.print(f"[{colour}]{escape(line)}[/]" if colour else escape(line))
