"""`caudal schema`: register, check and delete schemas."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.commands.options import Commands, Output, OutputOption, RegistryOptions, YesOption
from deploy.commands.schema import compatibility, diff, listing
from deploy.commands.schema.files import (
    FileArgument,
    NormalizeOption,
    ReferencesOption,
    SubjectArgument,
    TypeOption,
    read_definition,
)
from deploy.terminal.output import done, err, failure, note, print_json, steps, waiting
from deploy.views.compatibility import MEANINGS, Judgement, check_compatibility, level_of, read_judgement
from deploy.views.schemas import SubjectVersion, parse_subject_version
from deploy.views.text import plural

if TYPE_CHECKING:
    from schema_registry.client.models import RegisteredSchema, SchemaDefinition
    from schema_registry.client.registry_client import RegistryClient

app = Commands(no_args_is_help=True, help="Schemas: register, list, show, diff, check, delete, compatibility levels.")


@app.command(
    epilog="Examples:\n\n"
    "caudal schema register orders-value order.avsc\n\n"
    "caudal schema register orders-value order.avsc --reference shop.Money=money-value:1\n\n"
    "caudal schema show orders-value | caudal schema register copies-value - --type avro"
)
def register(
    registry: RegistryOptions,
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
) -> None:
    """Make a schema the next version of a subject, unless it is one already."""

    from core_broker.service.properties import from_assignments
    from schema_registry.client.errors import IncompatibleSchema

    definition = read_definition(file, schema_type, reference)
    described = {"properties": from_assignments(metadata)} if metadata else None
    with registry.client() as client:
        try:
            with waiting(f"registering {subject}"):
                registered, is_new = _register(client, subject, definition, metadata=described, normalize=normalize)
        except IncompatibleSchema as error:
            judged = read_judgement(error.messages, is_compatible=False)
            _report_refusal(subject, file, judged, level=judged.level or level_of(client, subject))
            raise typer.Exit(1) from None
    if output is Output.JSON:
        print_json({"subject": subject, "version": registered.version, "id": registered.id, "new": is_new})
        return
    place = f"[bold]{escape(subject)}[/] version [bold]{registered.version}[/], id [bold]{registered.id}[/]"
    done(f"{place} registered" if is_new else f"{place} exists already")


@app.command(
    epilog="Examples:\n\n"
    "caudal schema check orders-value order.avsc\n\n"
    "caudal schema check orders-value order.avsc --version 1 -o json\n\n"
    "The exit code is 0 when the schema may be registered, 1 when not: made for continuous integration."
)
def check(
    registry: RegistryOptions,
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
            show_default="those that the level compares with",
        ),
    ] = None,
    schema_type: TypeOption = None,
    reference: ReferencesOption = None,
    normalize: NormalizeOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check whether a schema may follow those of a subject, without registering it."""
    definition = read_definition(file, schema_type, reference)
    client = registry.client()
    with client, waiting(f"asking about {subject}"):
        judged = check_compatibility(client, subject, definition, version=version, normalize=normalize)
        level = judged.level or level_of(client, subject)
        is_first = judged.is_compatible and not _versions(client, subject)
    if output is Output.JSON:
        answer = {"subject": subject, "compatible": judged.is_compatible, "level": level, "version": judged.version}
        print_json({**answer, "differences": judged.differences})
    elif judged.is_compatible:
        done(f"the schema may follow those of [bold]{escape(subject)}[/]  [dim]{escape(level)}[/]")
        if is_first:
            note(f"{escape(subject)} has no versions yet: any valid schema may be the first")
    else:
        _report_refusal(subject, file, judged, level=level)
    if not judged.is_compatible:
        raise typer.Exit(1)


@app.command(
    epilog="Examples:\n\n"
    "caudal schema delete orders-value@2\n\n"
    "caudal schema delete old-value older-value --yes\n\n"
    "caudal schema delete old-value --permanent"
)
def delete(
    registry: RegistryOptions,
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="SUBJECT[@VERSION]...",
            help="Subjects or versions to delete.",
            show_default=False,
            autocompletion=completion.subjects,
        ),
    ],
    *,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="Remove for good: records written with it cannot be read any more.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Delete subjects or versions: hidden at first, still readable by id; --permanent removes them for good."""

    from schema_registry.client.errors import ClientError as RegistryError
    from schema_registry.client.errors import NotAllowed, RegistryUnreachable

    if not yes:
        how = " for good? Records written with them cannot be read any more" if permanent else ""
        typer.confirm(f"Delete {', '.join(places)}{how}?", abort=True, err=True)
    failed = False
    with registry.client() as client:
        for place in map(parse_subject_version, places):
            try:
                with waiting(f"deleting {place}"):
                    deleted = _delete(client, place, permanent=permanent)
            except (NotAllowed, RegistryUnreachable):
                raise
            except RegistryError as error:
                failed = True
                _report_not_deleted(client, place, error, permanent=permanent)
            else:
                versions = ", ".join(map(str, deleted))
                done(f"[bold]{escape(place.subject)}[/] version {versions} deleted{' for good' if permanent else ''}")
                if not permanent:
                    note(f"still readable by id; for good:  caudal schema delete {escape(str(place))} --permanent")
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
    """Register; also returns whether that made a new version."""
    from schema_registry.client.errors import SchemaNotFound

    try:
        before = client.lookup(subject, definition, normalize=normalize).version
    except SchemaNotFound:
        before = None
    registered = client.register(subject, definition, normalize=normalize, metadata=metadata)
    if registered.version is None:  # older registries return the id alone
        registered = client.lookup(subject, definition, normalize=normalize)
    return registered, registered.version != before


def _versions(client: "RegistryClient", subject: str) -> list[int]:
    from schema_registry.client.errors import SchemaNotFound

    try:
        return client.versions(subject)
    except SchemaNotFound:
        return []


def _report_refusal(subject: str, file: str, judged: Judgement, *, level: str) -> None:
    earlier = f"version {judged.version}" if judged.version is not None else "the versions"
    count = plural(len(judged.differences), "difference")
    failure(f"The schema may not follow {earlier} of {subject}: {count} against {level or 'its level'}")
    for item in judged.differences:
        if item.type:
            err.print(f"    [red]{escape(item.type)}[/]  [bold]{escape(item.path)}[/]")
            err.print(f"      {escape(item.words)}" + (f"  [dim]({escape(item.detail)})[/]" if item.detail else ""))
        else:
            err.print(f"    {escape(item.words)}")
    other = subject if judged.version is None else f"{subject}@{judged.version}"
    steps(
        [
            *([f"see what changed:  `caudal schema diff {other} {file}`"] if file != "-" else []),
            *([f"{level}: {MEANINGS[level]}"] if level in MEANINGS else []),
            f"or choose a less strict level:  `caudal schema compatibility {subject} LEVEL`",
        ]
    )


def _delete(client: "RegistryClient", place: SubjectVersion, *, permanent: bool) -> list[int]:
    """Delete; returns the versions. A permanent delete hides them first, as registries demand."""
    from schema_registry.client.errors import SchemaNotFound

    try:
        return _delete_once(client, place, permanent=permanent)
    except SchemaNotFound as error:
        if error.code not in (40405, 40407):
            raise
    _delete_once(client, place, permanent=False)
    return _delete_once(client, place, permanent=True)


def _delete_once(client: "RegistryClient", place: SubjectVersion, *, permanent: bool) -> list[int]:
    if place.version is None:
        return client.delete_subject(place.subject, permanent=permanent)
    return [client.delete_version(place.subject, place.version, permanent=permanent)]


def _report_not_deleted(client: "RegistryClient", place: SubjectVersion, error: Any, *, permanent: bool) -> None:
    from deploy.clients.failures import explain

    reason, steps = explain(error)
    if error.code == 42206:
        steps = _referrers(client, place, permanent=permanent) or steps
        reason = "other schemas refer to it"
    failure(f"{place} was not deleted: {reason}", steps)


def _referrers(client: "RegistryClient", place: SubjectVersion, *, permanent: bool) -> list[str]:
    """The schemas that refer to a version and have to be deleted first; if permanently, the deleted ones too."""
    from schema_registry.client.errors import ClientError as RegistryError

    steps = []
    try:
        versions = [place.version] if place.version is not None else client.versions(place.subject, deleted=permanent)
        for version in versions:
            for schema_id in client.referenced_by(place.subject, version, deleted=permanent):
                for user in client.versions_of(schema_id, subject=place.subject, deleted=permanent):
                    name = SubjectVersion(user.subject, user.version)
                    command = f"caudal schema delete {name}{' --permanent' if permanent else ''}"
                    steps.append(f"{name} (id {schema_id}) refers to it; delete that first:  `{command}`")
    except RegistryError:
        return steps  # deleted versions are not listed; these steps are only a help
    return list(dict.fromkeys(steps))


app.add_typer(listing.app)
app.add_typer(diff.app)
app.add_typer(compatibility.app)
