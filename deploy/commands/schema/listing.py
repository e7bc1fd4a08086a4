"""`caudal schema list` and `caudal schema show`."""

from typing import TYPE_CHECKING, Annotated

import typer

from deploy.commands import completion
from deploy.commands.options import Commands, Output, OutputOption, RegistryOptions
from deploy.terminal.output import examples, facts, note, out, print_json, progress, table, waiting
from deploy.views.schemas import describe_schema, find_schema, format_schema, links, parse_subject_version, schema_name

if TYPE_CHECKING:
    from schema_registry.client.models import RegisteredSchema

app = Commands()

LIST_EPILOG = examples(
    "caudal schema list",
    "caudal schema list orders- --versions",
    "caudal schema list --context staging --deleted -o json",
)

SHOW_EPILOG = examples(
    "caudal schema show orders-value",
    "caudal schema show orders-value@2 > order.avsc",
    "caudal schema show --id 7 --references",
)


@app.command(name="list", epilog=LIST_EPILOG)
def list_(
    registry: RegistryOptions,
    prefix: Annotated[
        str,
        typer.Argument(
            metavar="[PREFIX]",
            help="Only subjects that begin with this.",
            show_default=False,
            autocompletion=completion.subjects,
        ),
    ] = "",
    *,
    versions: Annotated[bool, typer.Option("--versions", "-a", help="Show all versions, not only the latest.")] = False,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Also show what was deleted, but not permanently.")
    ] = False,
    context: Annotated[
        str | None, typer.Option("--context", metavar="NAME", help="Only subjects of a context.", show_default=False)
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the subjects with version, id, format and compatibility level."""
    from deploy.views.schemas import list_schemas

    if context is not None:
        prefix = f":.{context.strip(':').lstrip('.')}:{prefix}"
    with registry.client() as client, progress() as bar:
        task = bar.add_task("asking the registry", total=None)
        found = list_schemas(
            client,
            prefix,
            all_versions=versions,
            with_deleted=deleted,
            progress=lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
        )
    if output is Output.JSON:
        print_json(found)
    elif found:
        columns = ["Subject", "Version #", "Id #", "Type", "Level", *(["Deleted"] if deleted else [])]
        rows = [
            (item.subject or "", str(item.version), str(item.id), item.type, item.level)
            + (("deleted" if item.deleted else "",) if deleted else ())
            for item in found
        ]
        table("", columns, rows)
    else:
        note("no subjects here; create one:  caudal schema register SUBJECT FILE")


@app.command(epilog=SHOW_EPILOG)
def show(
    registry: RegistryOptions,
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUBJECT[@VERSION]]",
            help="A subject's version or latest one.",
            show_default=False,
            autocompletion=completion.subjects,
        ),
    ] = None,
    *,
    schema_id: Annotated[
        int | None, typer.Option("--id", min=0, help="The schema with an id instead.", show_default=False)
    ] = None,
    references: Annotated[
        bool, typer.Option("--references", help="Show instead which schemas it refers to, and which refer to it.")
    ] = False,
    deleted: Annotated[bool, typer.Option("--deleted", help="Show it although it was deleted.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print a schema: in colour on a terminal, as plain text otherwise."""
    if (version is None) == (schema_id is None):
        raise typer.BadParameter("say which schema: SUBJECT, SUBJECT@VERSION or --id N")
    with registry.client() as client, waiting("asking the registry"):
        if version is None:
            schema = client.by_id(schema_id or 0)
        else:
            schema = find_schema(client, parse_subject_version(version), deleted=deleted)
        linked = links(client, schema) if references else {}
    if output is Output.JSON:
        print_json(describe_schema(schema) | linked)
        return
    if not linked:
        _print_schema(schema)
        return
    name = schema_name(schema)
    if linked["reachable"]:
        rows = [(item["name"], item["subject"], str(item["version"])) for item in linked["reachable"]]
        table(f"{name} refers to", ["Name", "Subject", "Version #"], rows)
    else:
        note(f"{name} refers to no other schema")
    if linked["referenced_by"]:
        rows = [(item["subject"], str(item["version"]), str(item["id"])) for item in linked["referenced_by"]]
        table(f"{name} is referred to by", ["Subject", "Version #", "Id #"], rows)
    else:
        note(f"no other schema refers to {name}")


def _print_schema(schema: "RegisteredSchema") -> None:
    import sys

    from rich.syntax import Syntax

    text = format_schema(schema.definition)
    if not out.is_terminal:
        sys.stdout.write(text + "\n")
        return
    pairs = [("id", str(schema.id)), ("type", str(schema.definition.schema_type))]
    pairs += [("refers to", f"{item.name} = {item.subject}:{item.version}") for item in schema.definition.references]
    pairs += [(key, str(value)) for key, value in (schema.metadata or {}).get("properties", {}).items()]
    facts(schema_name(schema), pairs)
    out.print()
    lexer = "protobuf" if schema.definition.schema_type == "PROTOBUF" else "json"
    out.print(Syntax(text, lexer, theme="ansi_dark", background_color="default").highlight(text))
