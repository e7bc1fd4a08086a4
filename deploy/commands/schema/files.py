"""Arguments and options of the commands for schemas, and schemas in files."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deploy.commands import completion
from deploy.views.schemas import EXTENSIONS
from schema_registry.client.models import Reference, SchemaDefinition
from schema_registry.formats.schema import SchemaType

MAX_FILE_BYTES = 16 << 20
_REFERENCE = re.compile(r"(?P<name>.+)=(?P<subject>[^=]+):(?P<version>[0-9]{1,10}|latest)", re.DOTALL)

SubjectArgument = Annotated[
    str,
    typer.Argument(
        metavar="SUBJECT", help="Name of the subject.", show_default=False, autocompletion=completion.subjects
    ),
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
        help="A schema that this one refers to by that name. Repeat it for more.",
    ),
]
NormalizeOption = Annotated[
    bool, typer.Option("--normalize", help="Ignore differences without meaning, such as the order of keys.")
]


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
    try:
        if file != "-" and Path(file).stat().st_size > MAX_FILE_BYTES:
            raise typer.BadParameter(f"{file} has more than {MAX_FILE_BYTES} bytes", param_hint="FILE")
        text = sys.stdin.read(MAX_FILE_BYTES) if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}", param_hint="FILE") from None
    if not text.strip():
        raise typer.BadParameter(f"{'stdin' if file == '-' else file} is empty", param_hint="FILE")
    return SchemaDefinition(text, schema_type, tuple(parse_reference(item) for item in references or ()))
