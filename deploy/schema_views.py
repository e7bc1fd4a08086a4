"""`caudal schema list` and `caudal schema show`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

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
from deploy.schema_files import name_of, parse_place, pretty

if TYPE_CHECKING:
    from schema_registry.client.models import RegisteredSchema, SchemaDefinition
    from schema_registry.client.registry_client import RegistryClient

LIST_EPILOG = """Examples:

caudal schema list

caudal schema list orders- --versions

caudal schema list --context staging --deleted -o json"""

SHOW_EPILOG = """Examples:

caudal schema show orders-value

caudal schema show orders-value@2 > order.avsc

caudal schema show --id 7 --references"""

_REQUESTS_AT_ONCE = 8


def list_schemas(
    prefix: Annotated[
        str,
        typer.Argument(
            metavar="[PREFIX]",
            help="Only subjects that begin so.",
            show_default=False,
            autocompletion=values.subjects,
        ),
    ] = "",
    *,
    versions: Annotated[bool, typer.Option("--versions", "-a", help="Show all versions, not only the latest.")] = False,
    deleted: Annotated[bool, typer.Option("--deleted", help="Show what was deleted too, but not for good.")] = False,
    context: Annotated[
        str | None, typer.Option("--context", metavar="NAME", help="Only subjects of a context.", show_default=False)
    ] = None,
    output: OutputOption = Output.TABLE,
    registry: RegistryOption = DEFAULT_REGISTRY,
    user: UserOption = None,
    properties: RegistryPropertiesOption = None,
    client_config: RegistryConfigOption = None,
    timeout: RegistryTimeoutOption = 10.0,
) -> None:
    """List the subjects with version, id, format and compatibility level."""
    from deploy.output import note, print_json, table, waiting

    if context is not None:
        prefix = f":.{context.strip(':').lstrip('.')}:{prefix}"
    with registry_client(registry, user, properties, client_config, timeout) as client:
        with waiting("asking the registry"):
            live = _fetch(client, prefix, deleted=False, latest_only=not versions)
            hidden = _hidden(client, prefix, live, latest_only=not versions) if deleted else []
        found = sorted([*live, *hidden], key=lambda item: (item.subject or "", item.version or 0))
        levels = _levels(client, {item.subject or "" for item in found})
    gone = {(item.subject, item.version) for item in hidden}
    rows = [(item, (item.subject, item.version) in gone) for item in found]
    if output is Output.JSON:
        print_json([_row(item, levels, is_deleted=is_deleted) for item, is_deleted in rows])
    elif rows:
        columns = ["Subject", "Version #", "Id #", "Type", "Level", *(["Deleted"] if deleted else [])]
        table("", columns, [_cells(item, levels, deleted, is_deleted=is_deleted) for item, is_deleted in rows])
    else:
        note("no subjects here; make one:  caudal schema register SUBJECT FILE")


def show(
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUBJECT[@VERSION]]",
            help="A subject's version or latest one.",
            show_default=False,
            autocompletion=values.subjects,
        ),
    ] = None,
    *,
    schema_id: Annotated[
        int | None, typer.Option("--id", min=0, help="The schema with an id instead.", show_default=False)
    ] = None,
    references: Annotated[
        bool, typer.Option("--references", help="Show which schemas it mentions, and which mention it, instead.")
    ] = False,
    deleted: Annotated[bool, typer.Option("--deleted", help="Show it although it was deleted.")] = False,
    output: OutputOption = Output.TABLE,
    registry: RegistryOption = DEFAULT_REGISTRY,
    user: UserOption = None,
    properties: RegistryPropertiesOption = None,
    client_config: RegistryConfigOption = None,
    timeout: RegistryTimeoutOption = 10.0,
) -> None:
    """Print a schema: in colour on a terminal, as it is elsewhere."""
    from deploy.output import print_json, waiting

    if (place is None) == (schema_id is None):
        raise typer.BadParameter("say which schema: SUBJECT, SUBJECT@VERSION or --id N")
    client = registry_client(registry, user, properties, client_config, timeout)
    with client, waiting("asking the registry"):
        schema = _one(client, place, schema_id, deleted=deleted)
        links = _links(client, schema) if references else None
    if output is Output.JSON:
        print_json({**_described(schema), **({"reachable": links[0], "referenced_by": links[1]} if links else {})})
    elif links is not None:
        _show_links(schema, *links)
    else:
        _show_text(schema)


def _fetch(client: "RegistryClient", prefix: str, *, deleted: bool, latest_only: bool) -> "list[RegisteredSchema]":
    from schema_registry.client.errors import Refused, SchemaNotFound

    try:
        found = client.schemas(prefix=prefix or None, deleted=deleted, latest_only=latest_only)
    except (SchemaNotFound, Refused) as error:
        if error.code not in (404, 405):
            raise
        found = _fetch_each(client, prefix, deleted=deleted, latest_only=latest_only)
    return [item for item in found if (item.subject or "").startswith(prefix)]  # some registries know no prefix


def _fetch_each(client: "RegistryClient", prefix: str, *, deleted: bool, latest_only: bool) -> "list[RegisteredSchema]":
    """One request for each version, for registries that cannot list schemas."""

    def fetch(subject: str) -> "list[RegisteredSchema]":
        versions = sorted(client.versions(subject, deleted=deleted))
        return [client.version(subject, number, deleted=deleted) for number in versions[-1 if latest_only else 0 :]]

    names = client.subjects(prefix=prefix or None, deleted=deleted)
    return [item for found in _each(fetch, names, "reading schemas") for item in found]


def _hidden(
    client: "RegistryClient", prefix: str, live: "Sequence[RegisteredSchema]", *, latest_only: bool
) -> "list[RegisteredSchema]":
    """What was deleted: all such versions, or the latest of subjects that have no other."""
    shown = {(item.subject, item.version) for item in live}
    every = _fetch(client, prefix, deleted=True, latest_only=latest_only)
    if not latest_only:
        return [item for item in every if (item.subject, item.version) not in shown]
    subjects = {item.subject for item in live}
    return [item for item in every if item.subject not in subjects]


def _levels(client: "RegistryClient", subjects: Iterable[str]) -> dict[str, str]:
    from deploy.schema_judgement import level_of

    names = sorted(subjects)
    return dict(zip(names, _each(lambda name: level_of(client, name), names, "reading levels"), strict=True))


def _each(ask: Any, names: Sequence[str], what: str) -> list[Any]:
    """The answers for many names, a few requests at a time, with a bar when it takes long."""
    from concurrent.futures import ThreadPoolExecutor

    from deploy.output import progress

    answers = []
    with progress(visible=len(names) > _REQUESTS_AT_ONCE) as bar, ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        task = bar.add_task(what, total=len(names))
        for answer in pool.map(ask, names):
            answers.append(answer)
            bar.advance(task)
    return answers


def _row(item: "RegisteredSchema", levels: dict[str, str], *, is_deleted: bool) -> dict[str, object]:
    return {
        "subject": item.subject,
        "version": item.version,
        "id": item.id,
        "type": item.definition.schema_type,
        "level": levels[item.subject or ""],
        "deleted": is_deleted,
    }


def _cells(
    item: "RegisteredSchema", levels: dict[str, str], with_deleted: bool, *, is_deleted: bool
) -> Sequence[object]:
    cells = (
        item.subject or "",
        str(item.version),
        str(item.id),
        item.definition.schema_type,
        levels[item.subject or ""],
    )
    return (*cells, "deleted" if is_deleted else "") if with_deleted else cells


def _one(client: "RegistryClient", place: str | None, schema_id: int | None, *, deleted: bool) -> "RegisteredSchema":
    if place is None:
        assert schema_id is not None
        return client.by_id(schema_id)
    subject, version = parse_place(place)
    if deleted and version in (None, "latest"):
        version = max(client.versions(subject, deleted=True))
    return client.version(subject, "latest" if version is None else version, deleted=deleted)


def _links(
    client: "RegistryClient", schema: "RegisteredSchema"
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """What a schema mentions, directly or not, and what mentions it."""
    mentions: list[dict[str, object]] = [
        {"name": item.name, "subject": item.subject, "version": item.version}
        for item in client.references(schema.definition)
    ]
    places = [(schema.subject, schema.version)]
    if schema.subject is None and schema.id is not None:
        places = [(item.subject, item.version) for item in client.versions_of(schema.id)]
    ids = {
        schema_id
        for subject, version in places
        if subject is not None and version is not None
        for schema_id in client.referenced_by(subject, version)
    }
    users: list[dict[str, object]] = [
        {"id": schema_id, "subject": item.subject, "version": item.version}
        for schema_id in sorted(ids)
        for item in client.versions_of(schema_id, subject=schema.subject)
    ]
    return mentions, users


def _described(schema: "RegisteredSchema") -> dict[str, object]:
    described = {
        "subject": schema.subject,
        "version": schema.version,
        "id": schema.id,
        "guid": schema.guid,
        "type": schema.definition.schema_type,
        "references": [
            {"name": item.name, "subject": item.subject, "version": item.version}
            for item in schema.definition.references
        ],
        "metadata": schema.metadata,
        "rule_set": schema.rule_set,
        "schema": schema.definition.text,
    }
    return {key: value for key, value in described.items() if value is not None}


def _show_links(schema: "RegisteredSchema", mentions: list[dict[str, object]], users: list[dict[str, object]]) -> None:
    from deploy.output import note, table

    name = name_of(schema)
    if mentions:
        rows = [(item["name"], item["subject"], str(item["version"])) for item in mentions]
        table(f"{name} mentions", ["Name", "Subject", "Version #"], rows)
    else:
        note(f"{name} mentions no other schema")
    if users:
        rows = [(item["subject"], str(item["version"]), str(item["id"])) for item in users]
        table(f"{name} is mentioned by", ["Subject", "Version #", "Id #"], rows)
    else:
        note(f"{name} is mentioned by no other schema")


def _show_text(schema: "RegisteredSchema") -> None:
    import sys

    from deploy.output import facts, out

    text = pretty(schema.definition)
    if not out.is_terminal:
        sys.stdout.write(text + "\n")
        return
    pairs = [("id", str(schema.id)), ("type", str(schema.definition.schema_type))]
    pairs += [("mentions", f"{item.name} = {item.subject}:{item.version}") for item in schema.definition.references]
    pairs += [(key, str(value)) for key, value in (schema.metadata or {}).get("properties", {}).items()]
    facts(name_of(schema), pairs)
    out.print()
    out.print(_coloured(schema.definition, text))


def _coloured(definition: "SchemaDefinition", text: str) -> Any:
    from rich.syntax import Syntax

    lexer = "protobuf" if definition.schema_type == "PROTOBUF" else "json"
    return Syntax(text, lexer, theme="ansi_dark", background_color="default").highlight(text)
