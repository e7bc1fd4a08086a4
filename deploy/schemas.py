"""`caudal schema`: register, check and delete schemas."""

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
from deploy.schema_files import (
    FileArgument,
    NormalizeOption,
    Place,
    ReferencesOption,
    SubjectArgument,
    TypeOption,
    parse_place,
    read_definition,
)

if TYPE_CHECKING:
    from deploy.schema_judgement import Judgement
    from schema_registry.client.models import RegisteredSchema, SchemaDefinition
    from schema_registry.client.registry_client import RegistryClient

app = typer.Typer(
    no_args_is_help=True, help="Schemas: register, list, show, diff, check, delete, and how strictly they evolve."
)


@app.command(
    epilog="Examples:\n\n"
    "caudal schema register orders-value order.avsc\n\n"
    "caudal schema register orders-value order.avsc --reference shop.Money=money-value:1\n\n"
    "caudal schema show orders-value | caudal schema register copies-value - --type avro"
)
def register(
    subject: SubjectArgument,
    file: FileArgument,
    *,
    schema_type: TypeOption = None,
    reference: ReferencesOption = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="KEY=VALUE", help="A property of the schema. Repeat it for more."),
    ] = None,
    normalize: NormalizeOption = False,
    output: OutputOption = Output.TABLE,
    registry: RegistryOption = DEFAULT_REGISTRY,
    user: UserOption = None,
    properties: RegistryPropertiesOption = None,
    client_config: RegistryConfigOption = None,
    timeout: RegistryTimeoutOption = 10.0,
) -> None:
    """Make a schema the next version of a subject, unless it is one already."""
    from rich.markup import escape

    from core_broker.service.properties import from_assignments
    from deploy.output import done, print_json, waiting
    from schema_registry.client.errors import IncompatibleSchema

    definition = read_definition(file, schema_type, reference)
    described = {"properties": from_assignments(metadata)} if metadata else None
    with registry_client(registry, user, properties, client_config, timeout) as client:
        try:
            with waiting(f"registering {subject}"):
                registered, is_new = _register(client, subject, definition, metadata=described, normalize=normalize)
        except IncompatibleSchema as error:
            _tell_incompatible(client, subject, file, error)
            raise typer.Exit(1) from None
    if output is Output.JSON:
        print_json({"subject": subject, "version": registered.version, "id": registered.id, "new": is_new})
        return
    place = f"[bold]{escape(subject)}[/] version [bold]{registered.version}[/], id [bold]{registered.id}[/]"
    done(f"{place} registered" if is_new else f"{place} is there already")


@app.command(
    epilog="Examples:\n\n"
    "caudal schema check orders-value order.avsc\n\n"
    "caudal schema check orders-value order.avsc --version 1 -o json\n\n"
    "The exit code is 0 when the schema may be registered, 1 when not: made for continuous integration."
)
def check(
    subject: SubjectArgument,
    file: FileArgument,
    *,
    version: Annotated[
        str | None,
        typer.Option(
            "--version",
            "-v",
            metavar="N|latest",
            help="Compare with this version only.",
            show_default="those that the level names",
        ),
    ] = None,
    schema_type: TypeOption = None,
    reference: ReferencesOption = None,
    normalize: NormalizeOption = False,
    output: OutputOption = Output.TABLE,
    registry: RegistryOption = DEFAULT_REGISTRY,
    user: UserOption = None,
    properties: RegistryPropertiesOption = None,
    client_config: RegistryConfigOption = None,
    timeout: RegistryTimeoutOption = 10.0,
) -> None:
    """Tell whether a schema may follow those of a subject, without registering it."""
    from deploy.output import print_json, waiting
    from deploy.schema_judgement import ask, level_of

    definition = read_definition(file, schema_type, reference)
    client = registry_client(registry, user, properties, client_config, timeout)
    with client, waiting(f"asking about {subject}"):
        judged = ask(client, subject, definition, version=version, normalize=normalize)
        level = judged.level or level_of(client, subject)
        is_first = judged.is_compatible and not _versions(client, subject)
    if output is Output.JSON:
        told = {"subject": subject, "compatible": judged.is_compatible, "level": level, "version": judged.version}
        print_json({**told, "differences": judged.clashes})
    else:
        _tell_checked(subject, file, judged, level=level, is_first=is_first)
    if not judged.is_compatible:
        raise typer.Exit(1)


@app.command(
    epilog="Examples:\n\n"
    "caudal schema delete orders-value@2\n\n"
    "caudal schema delete old-value older-value --yes\n\n"
    "caudal schema delete old-value --permanent"
)
def delete(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="SUBJECT[@VERSION]...",
            help="Subjects or versions to delete.",
            show_default=False,
            autocompletion=values.subjects,
        ),
    ],
    *,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="For good: records that were written with it cannot be read any more.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    registry: RegistryOption = DEFAULT_REGISTRY,
    user: UserOption = None,
    properties: RegistryPropertiesOption = None,
    client_config: RegistryConfigOption = None,
    timeout: RegistryTimeoutOption = 10.0,
) -> None:
    """Delete subjects or versions: hidden at first, still readable by id; --permanent removes them for good."""
    from deploy.output import waiting
    from schema_registry.client.errors import ClientError as RegistryError
    from schema_registry.client.errors import NotAllowed, RegistryUnreachable

    if not yes:
        how = " for good? Records written with them cannot be read any more" if permanent else ""
        typer.confirm(f"Delete {', '.join(places)}{how}?", abort=True, err=True)
    failed = False
    with registry_client(registry, user, properties, client_config, timeout) as client:
        for place in map(parse_place, places):
            try:
                with waiting(f"deleting {place}"):
                    deleted = _delete(client, place, permanent=permanent)
            except (NotAllowed, RegistryUnreachable):
                raise
            except RegistryError as error:
                failed = True
                _tell_not_deleted(client, place, error, permanent=permanent)
            else:
                _tell_deleted(place, deleted, permanent=permanent)
    if failed:
        raise typer.Exit(1)


def _register(
    client: "RegistryClient",
    subject: str,
    definition: "SchemaDefinition",
    *,
    metadata: dict[str, Any] | None,
    normalize: bool,
) -> "tuple[RegisteredSchema, bool]":
    """Register, and tell whether that made a new version."""
    from schema_registry.client.errors import SchemaNotFound

    try:
        before = client.lookup(subject, definition, normalize=normalize).version
    except SchemaNotFound:
        before = None
    registered = client.register(subject, definition, normalize=normalize, metadata=metadata)
    if registered.version is None:  # older registries tell the id alone
        registered = client.lookup(subject, definition, normalize=normalize)
    return registered, registered.version != before


def _versions(client: "RegistryClient", subject: str) -> list[int]:
    from schema_registry.client.errors import SchemaNotFound

    try:
        return client.versions(subject)
    except SchemaNotFound:
        return []


def _tell_incompatible(client: "RegistryClient", subject: str, file: str, error: Any) -> None:
    from deploy.schema_judgement import judgement, level_of

    judged = judgement(error.messages, is_compatible=False)
    _tell_clashes(subject, file, judged, level=judged.level or level_of(client, subject))


def _tell_checked(subject: str, file: str, judged: "Judgement", *, level: str, is_first: bool) -> None:
    from rich.markup import escape

    from deploy.output import done, note

    if not judged.is_compatible:
        _tell_clashes(subject, file, judged, level=level)
        return
    done(f"the schema may follow those of [bold]{escape(subject)}[/]  [dim]{escape(level)}[/]")
    if is_first:
        note(f"{escape(subject)} has no versions yet: whatever is valid may come first")


def _tell_clashes(subject: str, file: str, judged: "Judgement", *, level: str) -> None:
    from rich.markup import escape

    from deploy.output import failure, plural
    from deploy.schema_judgement import MEANINGS, tell

    earlier = f"version {judged.version}" if judged.version is not None else "what is there"
    count = plural(len(judged.clashes), "difference")
    failure(f"The schema may not follow {earlier} of {subject}: {count} against {level or 'its level'}")
    tell(judged)
    shown = escape(subject)
    other = shown if judged.version is None else f"{shown}@{judged.version}"
    steps = [f"see what changed:  [bold]caudal schema diff {other} {escape(file)}[/]"] if file != "-" else []
    if meaning := MEANINGS.get(level):
        steps.append(f"{level}: {meaning}")
    steps.append(f"or ask for less:  [bold]caudal schema compatibility {shown} LEVEL[/]")
    for step in steps:
        _step(step)


def _step(text: str) -> None:
    from deploy.output import err

    err.print(f"  [dim]→[/] {text}")


def _delete(client: "RegistryClient", place: Place, *, permanent: bool) -> list[int]:
    """Delete, and tell which versions; what is to go for good is hidden first, as registries ask."""
    from schema_registry.client.errors import SchemaNotFound

    try:
        return _delete_once(client, place, permanent=permanent)
    except SchemaNotFound as error:
        if error.code not in (40405, 40407):
            raise
    _delete_once(client, place, permanent=False)
    return _delete_once(client, place, permanent=True)


def _delete_once(client: "RegistryClient", place: Place, *, permanent: bool) -> list[int]:
    if place.version is None:
        return client.delete_subject(place.subject, permanent=permanent)
    return [client.delete_version(place.subject, place.version, permanent=permanent)]


def _tell_deleted(place: Place, versions: list[int], *, permanent: bool) -> None:
    from rich.markup import escape

    from deploy.output import done, note

    name = escape(place.subject)
    done(f"[bold]{name}[/] version {', '.join(map(str, versions))} deleted{' for good' if permanent else ''}")
    if not permanent:
        note(f"still readable by id; for good:  caudal schema delete {escape(str(place))} --permanent")


def _tell_not_deleted(client: "RegistryClient", place: Place, error: Any, *, permanent: bool) -> None:
    from deploy.failures import explain
    from deploy.output import failure

    reason, steps = explain(error)
    if error.code == 42206:
        steps = _referrers(client, place, permanent=permanent) or steps
        reason = "other schemas mention it"
    failure(f"{place} was not deleted: {reason}", steps)


def _referrers(client: "RegistryClient", place: Place, *, permanent: bool) -> list[str]:
    """What to do about the schemas that mention a version: delete them first, the hidden ones too if for good."""
    from rich.markup import escape

    from schema_registry.client.errors import ClientError as RegistryError

    steps = []
    try:
        versions = [place.version] if place.version is not None else client.versions(place.subject, deleted=permanent)
        for version in versions:
            for schema_id in client.referenced_by(place.subject, version, deleted=permanent):
                for user in client.versions_of(schema_id, subject=place.subject, deleted=permanent):
                    name = escape(str(Place(user.subject, user.version)))
                    command = f"caudal schema delete {name}{' --permanent' if permanent else ''}"
                    steps.append(f"mentioned by {name} (id {schema_id}):  [bold]{command}[/] first")
    except RegistryError:
        return steps  # deleted versions are not listed, and this only adds to what is told anyway
    return list(dict.fromkeys(steps))
