"""Schemas as users name them: files, SUBJECT@VERSION, NAME=SUBJECT:VERSION."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from deploy import completion_values as values
from schema_registry.client.models import Reference, RegisteredSchema, SchemaDefinition
from schema_registry.formats.schema import References, Schema, SchemaType

MAX_FILE_BYTES = 16 << 20
EXTENSIONS = {".avsc": SchemaType.AVRO, ".proto": SchemaType.PROTOBUF, ".json": SchemaType.JSON}
_VERSION = re.compile(r"(?P<subject>.+)@(?P<version>[0-9]{1,10}|latest)", re.DOTALL)
_REFERENCE = re.compile(r"(?P<name>.+)=(?P<subject>[^=]+):(?P<version>[0-9]{1,10}|latest)", re.DOTALL)

SubjectArgument = Annotated[
    str,
    typer.Argument(metavar="SUBJECT", help="Name of the subject.", show_default=False, autocompletion=values.subjects),
]
FileArgument = Annotated[
    str, typer.Argument(metavar="FILE|-", help="File with the schema; - reads stdin.", show_default=False)
]
TypeOption = Annotated[
    SchemaType | None,
    typer.Option(
        "--type",
        "-t",
        case_sensitive=False,
        help="Format of the schema.",
        show_default="by .avsc, .proto or .json",
    ),
]
ReferencesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="NAME=SUBJECT:VERSION",
        help="A schema that this one mentions by that name. Repeat it for more.",
    ),
]
NormalizeOption = Annotated[
    bool, typer.Option("--normalize", help="Overlook differences that have no meaning, such as the order of keys.")
]


class Place(NamedTuple):
    """A version of a subject, or, without a version, the subject."""

    subject: str
    version: int | Literal["latest"] | None = None

    def __str__(self) -> str:
        return self.subject if self.version is None else f"{self.subject}@{self.version}"


def parse_place(text: str) -> Place:
    """Read `SUBJECT` or `SUBJECT@VERSION`."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return Place(text)
    return Place(match["subject"], "latest" if match["version"] == "latest" else int(match["version"]))


def parse_reference(text: str) -> Reference:
    """Read `NAME=SUBJECT:VERSION`; raises BadParameter."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise typer.BadParameter(
            f"{text!r} must look like NAME=SUBJECT:VERSION, e.g. shop.Money=money-value:1", param_hint="--reference"
        )
    version = -1 if match["version"] == "latest" else int(match["version"])
    return Reference(match["name"], match["subject"], version)


def read_definition(file: str, schema_type: SchemaType | None, references: Sequence[str] | None) -> SchemaDefinition:
    """The schema in a file, or in stdin for `-`; raises BadParameter."""
    if schema_type is None:
        schema_type = EXTENSIONS.get(Path(file).suffix.lower())
    if schema_type is None:
        raise typer.BadParameter(
            f"what is the format of {'stdin' if file == '-' else file}? "
            "Say --type avro, json or protobuf, or name the file .avsc, .json or .proto",
            param_hint="--type",
        )
    text = sys.stdin.read(MAX_FILE_BYTES) if file == "-" else _text_of(Path(file))
    if not text.strip():
        raise typer.BadParameter(f"{'stdin' if file == '-' else file} is empty", param_hint="FILE")
    return SchemaDefinition(text, schema_type, tuple(parse_reference(item) for item in references or ()))


def pretty(definition: SchemaDefinition) -> str:
    """The text of a schema for people: JSON indented, everything as it was spelt."""
    import msgspec

    if definition.schema_type is SchemaType.PROTOBUF:
        return definition.text.rstrip("\n")
    try:
        return msgspec.json.format(definition.text, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return definition.text


def stored(definition: SchemaDefinition, references: Callable[[], References]) -> SchemaDefinition:
    """A schema as registries store it; raises InvalidSchema, or ImportError when the format's library is missing."""
    import msgspec

    if definition.schema_type is SchemaType.JSON:
        return definition  # stored as it is, but for the layout
    parse = _parser(definition.schema_type)
    return msgspec.structs.replace(definition, text=parse(definition.text, references(), strict=False).canonical)


def _parser(schema_type: SchemaType) -> Callable[..., Schema]:
    if schema_type is SchemaType.AVRO:
        from schema_registry.formats.avro import parse as parse_avro

        return parse_avro
    from schema_registry.formats.protobuf import parse as parse_protobuf

    return parse_protobuf


def name_of(schema: RegisteredSchema) -> str:
    """A registered schema as users name it."""
    if schema.subject is None:
        return f"id {schema.id}"
    return str(Place(schema.subject, schema.version))


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise typer.BadParameter(f"{path} has more than {MAX_FILE_BYTES} bytes", param_hint="FILE")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}", param_hint="FILE") from None
