"""`caudal schema`: register, check and delete schemas."""

from typing import TYPE_CHECKING, Annotated

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
from deploy.terminal.output import done, err, examples, failure, note, print_json, steps, waiting
from deploy.views.compatibility import MEANINGS, Judgement, check_compatibility, level_of, read_judgement
from deploy.views.schemas import SubjectVersion, parse_subject_version
from deploy.views.text import plural

if TYPE_CHECKING:
    from schema_registry.client.registry_client import RegistryClient

app = Commands(no_args_is_help=True, help="Schemas: register, list, show, diff, check, delete, compatibility levels.")


@app.command(
    epilog=examples(
        "caudal schema register orders-value order.avsc",
        "caudal schema register orders-value order.avsc --reference shop.Money=money-value:1",
        "caudal schema show orders-value | caudal schema register copies-value - --type avro",
    )
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
    from schema_registry.client.errors import IncompatibleSchema, SchemaNotFound

    definition = read_definition(file, schema_type, reference)
    described = {"properties": from_assignments(metadata)} if metadata else None
    with registry.client() as client:
        try:
            with waiting(f"registering {subject}"):
                try:
                    before = client.lookup(subject, definition, normalize=normalize).version
                except SchemaNotFound:
                    before = None
                registered = client.register(subject, definition, normalize=normalize, metadata=described)
                if registered.version is None:  # older registries return only the id
                    registered = client.lookup(subject, definition, normalize=normalize)
        except IncompatibleSchema as error:
            judged = read_judgement(error.messages, is_compatible=False)
            _report_refusal(subject, file, judged, level=judged.level or level_of(client, subject))
            raise typer.Exit(1) from None
    is_new = registered.version != before
    if output is Output.JSON:
        print_json({"subject": subject, "version": registered.version, "id": registered.id, "new": is_new})
        return
    version = f"[bold]{escape(subject)}[/] version [bold]{registered.version}[/], id [bold]{registered.id}[/]"
    done(f"{version} {'registered' if is_new else 'exists already'}")


@app.command(
    epilog=examples(
        "caudal schema check orders-value order.avsc",
        "caudal schema check orders-value order.avsc --version 1 -o json",
        "The exit code is 0 when the schema may be registered, 1 when not: made for continuous integration.",
    )
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
    from schema_registry.client.errors import SchemaNotFound

    definition = read_definition(file, schema_type, reference)
    is_first = False
    with registry.client() as client, waiting(f"asking about {subject}"):
        judged = check_compatibility(client, subject, definition, version=version, normalize=normalize)
        level = judged.level or level_of(client, subject)
        if judged.is_compatible:
            try:
                is_first = not client.versions(subject)
            except SchemaNotFound:
                is_first = True
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
    epilog=examples(
        "caudal schema delete orders-value@2",
        "caudal schema delete old-value older-value --yes",
        "caudal schema delete old-value --permanent",
    )
)
def delete(
    registry: RegistryOptions,
    versions: Annotated[
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
    from deploy.clients.failures import explain
    from schema_registry.client.errors import ClientError as RegistryError
    from schema_registry.client.errors import NotAllowed, RegistryUnreachable

    if not yes:
        how = " for good? Records written with them cannot be read any more" if permanent else ""
        typer.confirm(f"Delete {', '.join(versions)}{how}?", abort=True, err=True)
    failed = False
    with registry.client() as client:
        for item in map(parse_subject_version, versions):
            try:
                with waiting(f"deleting {item}"):
                    deleted = _delete(client, item, permanent=permanent)
            except (NotAllowed, RegistryUnreachable):
                raise
            except RegistryError as error:
                failed = True
                reason, advice = explain(error)
                if error.code == 42206:
                    reason = "other schemas refer to it"
                    advice = _referrers(client, item, permanent=permanent) or advice
                failure(f"{item} was not deleted: {reason}", advice)
            else:
                numbers = ", ".join(map(str, deleted))
                done(f"[bold]{escape(item.subject)}[/] version {numbers} deleted{' for good' if permanent else ''}")
                if not permanent:
                    note(f"still readable by id; for good:  caudal schema delete {escape(str(item))} --permanent")
    if failed:
        raise typer.Exit(1)


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


def _delete(client: "RegistryClient", wanted: SubjectVersion, *, permanent: bool) -> list[int]:
    """Delete; returns the versions. A permanent delete hides them first, as registries demand."""
    from schema_registry.client.errors import SchemaNotFound

    def delete(*, permanent: bool) -> list[int]:
        if wanted.version is None:
            return client.delete_subject(wanted.subject, permanent=permanent)
        return [client.delete_version(wanted.subject, wanted.version, permanent=permanent)]

    try:
        return delete(permanent=permanent)
    except SchemaNotFound as error:
        if error.code not in (40405, 40407):
            raise
    delete(permanent=False)
    return delete(permanent=True)


def _referrers(client: "RegistryClient", wanted: SubjectVersion, *, permanent: bool) -> list[str]:
    """The schemas that refer to a version and have to be deleted first; if permanently, the deleted ones too."""
    from schema_registry.client.errors import ClientError as RegistryError

    steps = []
    try:
        versions = (
            [wanted.version] if wanted.version is not None else client.versions(wanted.subject, deleted=permanent)
        )
        for version in versions:
            for schema_id in client.referenced_by(wanted.subject, version, deleted=permanent):
                for user in client.versions_of(schema_id, subject=wanted.subject, deleted=permanent):
                    name = SubjectVersion(user.subject, user.version)
                    command = f"caudal schema delete {name}{' --permanent' if permanent else ''}"
                    steps.append(f"{name} (id {schema_id}) refers to it; delete that first:  `{command}`")
    except RegistryError:
        return steps  # deleted versions are not listed; these steps are only a help
    return list(dict.fromkeys(steps))


app.add_typer(listing.app)
app.add_typer(diff.app)
app.add_typer(compatibility.app)
