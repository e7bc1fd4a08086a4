"""`caudal schema diff`: what changed between two schemas, and what that breaks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.commands.options import Commands, Output, OutputOption, RegistryOptions
from deploy.commands.schema.files import ReferencesOption, TypeOption, read_definition
from deploy.terminal.output import examples, note, out, print_json, waiting
from deploy.views.schemas import EXTENSIONS, find_schema, parse_subject_version

if TYPE_CHECKING:
    from deploy.views.schema_diff import Comparison, Side
    from schema_registry.client.registry_client import RegistryClient
    from schema_registry.formats.schema import SchemaType

app = Commands()

EPILOG = examples(
    "caudal schema diff orders-value@1 orders-value@2",
    "caudal schema diff orders-value order.avsc",
    "caudal schema diff orders-value                    (the last two versions)",
    "+ added, - removed, ~ changed, and beside it what this breaks according to the registry: backward (new schemas "
    "read old records), forward (old schemas read new records), full (both).",
)

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_LINE_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_WAYS = {
    ("backward", True): "{new} reads what was written with {old}",
    ("backward", False): "{new} cannot read all that was written with {old}",
    ("forward", True): "{old} reads what is written with {new}",
    ("forward", False): "{old} cannot read all that is written with {new}",
    ("full", True): "{old} and {new} read each other's records",
    ("full", False): "{old} and {new} cannot read all of each other's records",
}


@app.command(epilog=EPILOG)
def diff(
    registry: RegistryOptions,
    old: Annotated[
        str,
        typer.Argument(
            metavar="SUBJECT[@VERSION]",
            help="The old schema.",
            show_default=False,
            autocompletion=completion.subjects,
        ),
    ],
    new: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUBJECT[@VERSION]|FILE|-]",
            help="The new schema: another version, or a file.",
            show_default=False,
            autocompletion=completion.subjects,
        ),
    ] = None,
    *,
    schema_type: TypeOption = None,
    reference: ReferencesOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what changed between two schemas, and what that breaks."""
    from deploy.views.schema_diff import compare_schemas

    with registry.client() as client, waiting("comparing"):
        compared = compare_schemas(client, *_sides(client, old, new, schema_type, reference))
    if output is Output.JSON:
        _print_json(compared)
    elif not compared.lines and not compared.changes and not compared.trouble:
        note(f"{compared.old.name} and {compared.new.name} are the same")
    else:
        _print_changes(compared)
        _print_judgements(compared)
        out.print()
        for line in compared.lines:
            colour = "bold" if line.startswith(("+++", "---")) else _LINE_COLOURS.get(line[:1])
            out.print(f"[{colour}]{escape(line)}[/]" if colour else escape(line))


def _sides(
    client: "RegistryClient",
    old: str,
    new: str | None,
    schema_type: "SchemaType | None",
    references: list[str] | None,
) -> "tuple[Side, Side]":
    from deploy.views.schema_diff import Side

    wanted = parse_subject_version(old)
    if new is None:
        versions = sorted(client.versions(wanted.subject))
        if len(versions) < 2 or wanted.version is not None:
            raise typer.BadParameter(f"say what to compare {old} with: another version or a file")
        earlier, latest = (client.version(wanted.subject, number) for number in versions[-2:])
        return Side.of(earlier), Side.of(latest)
    is_file = new == "-" or schema_type is not None or Path(new).suffix in EXTENSIONS or Path(new).is_file()
    if not is_file:
        return Side.of(find_schema(client, wanted)), Side.of(find_schema(client, parse_subject_version(new)))
    definition = read_definition(new, schema_type, references)
    before = Side.of(find_schema(client, wanted))
    if not definition.references and before.definition.schema_type is definition.schema_type:
        # A file does not say which schemas it refers to; most likely those of the version before it.
        definition = msgspec.structs.replace(definition, references=before.definition.references)
    return before, Side("stdin" if new == "-" else new, definition)


def _print_json(compared: "Comparison") -> None:
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
                direction: {"compatible": judged.is_compatible, "differences": judged.differences}
                for direction, judged in compared.judgements.items()
            },
            "text": compared.lines,
        }
    )


def _print_changes(compared: "Comparison") -> None:
    if compared.changes is None:
        note(f"the structures cannot be compared: {escape(compared.trouble)}")
        return
    out.print(f"\n[bold]{escape(compared.old.name)} → {escape(compared.new.name)}[/]")
    if not compared.changes:
        out.print("  [dim]nothing that records depend on[/]")
    width = max((len(f"{change.kind} {change.name}") for change in compared.changes), default=0)
    for change in compared.changes:
        sign, colour = _SIGNS[change.change]
        name = f"{change.kind} {change.name}"
        values = [value for value in (change.before, change.after) if value is not None]
        shown = " → ".join(dict.fromkeys(values))
        breaks = "".join(f"  [red]✗ {direction}[/]" for direction in change.breaks)
        beside = f"  {escape(shown)}{breaks}".rstrip()
        out.print(f"  [{colour}]{sign} {escape(name.ljust(width) if beside else name)}[/]{beside}")


def _print_judgements(compared: "Comparison") -> None:
    out.print(f"\n[bold]Compatibility[/]  [dim]according to the registry; level {escape(compared.level)}[/]")
    if not compared.judgements:
        out.print("  [dim]at this level the registry checks nothing[/]")
    for direction, judged in compared.judgements.items():
        mark = "[green]✓[/]" if judged.is_compatible else "[red]✗[/]"
        way = _WAYS[direction, judged.is_compatible].format(old=compared.old.name, new=compared.new.name)
        out.print(f"  {mark} [bold]{direction.ljust(8)}[/]  {escape(way)}")
        for item in judged.differences:
            kind = f"[red]{escape(item.type)}[/]  " if item.type else ""
            out.print(f"      {kind}{escape(item.words)}")
