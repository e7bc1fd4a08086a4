from pathlib import Path

import pytest
import typer

from deploy.commands.schema.files import parse_reference, read_definition
from schema_registry.client.models import Reference
from schema_registry.formats.schema import SchemaType


@pytest.mark.parametrize(
    "text,reference",
    [
        ("shop.Money=money-value:1", Reference("shop.Money", "money-value", 1)),
        ("shop/money.proto=:.staging:money:latest", Reference("shop/money.proto", ":.staging:money", -1)),
        ("http://x/?a=b=money:2", Reference("http://x/?a=b", "money", 2)),
    ],
)
def test_reference_is_name_subject_and_version(text: str, reference: Reference) -> None:
    assert parse_reference(text) == reference


@pytest.mark.parametrize("text", ["", "shop.Money", "shop.Money=money-value", "shop.Money=money-value:x", "=a:1"])
def test_reference_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="NAME=SUBJECT:VERSION"):
        parse_reference(text)


@pytest.mark.parametrize(
    "name,schema_type",
    [("a.avsc", SchemaType.AVRO), ("a.JSON", SchemaType.JSON), ("a.proto", SchemaType.PROTOBUF)],
)
def test_format_follows_the_extension_unless_it_is_said(name: str, schema_type: SchemaType, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text('"int"')
    assert read_definition(str(file), None, None).schema_type is schema_type
    assert read_definition(str(file), SchemaType.JSON, None).schema_type is SchemaType.JSON


@pytest.mark.parametrize(
    "content,hint", [(b"\xff\xfe", "cannot be read"), (b" \n", "is empty")], ids=["no-text", "empty"]
)
def test_file_without_a_schema_is_refused(content: bytes, hint: str, tmp_path: Path) -> None:
    file = tmp_path / "a.avsc"
    file.write_bytes(content)
    with pytest.raises(typer.BadParameter, match=hint):
        read_definition(str(file), None, None)
