"""The tools for schemas against a running registry, as a user types them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Caudal
from tests.support.registry import RegistryProcess

AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": "string", "default": ""}],
}
AVRO_WIDER = {**AVRO, "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}]}
AVRO_BROKEN = {**AVRO, "fields": [{"name": "id", "type": "int"}, {"name": "total", "type": "double"}]}

JSON = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
JSON_BROKEN = {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False}

PROTO = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  int32 id = 1;\n  string note = 2;\n}\n'
PROTO_BROKEN = PROTO.replace("int32 id", "double id").replace("  string note = 2;\n", "  string remark = 2;\n")

FORMATS = {
    "avro": ("order.avsc", json.dumps(AVRO), json.dumps(AVRO_BROKEN)),
    "json": ("order.json", json.dumps(JSON), json.dumps(JSON_BROKEN)),
    "protobuf": ("order.proto", PROTO, PROTO_BROKEN),
}

Write = Callable[[str, Any], str]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry")) as process:
        yield process


@pytest.fixture
def caudal(registry: RegistryProcess, monkeypatch: pytest.MonkeyPatch) -> Caudal:
    monkeypatch.setenv("CAUDAL_REGISTRY", registry.url)
    return Caudal(monkeypatch)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(name: str, schema: Any) -> str:
        path = tmp_path / name
        path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
        return str(path)

    return to_file


# --- register --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
def test_schema_is_registered_once_and_shown_again(caudal: Caudal, write: Write, name: str, kind: str) -> None:
    file, text, _ = FORMATS[kind]
    output = caudal("schema", "register", name, write(file, text)).stderr
    assert f"{name} version 1, id " in output
    assert "registered" in output
    assert "exists already" in caudal("schema", "register", name, write(file, text)).stderr
    again = caudal.json("schema", "register", name, write(file, text))
    assert (again["subject"], again["version"], again["new"]) == (name, 1, False)
    shown = caudal("schema", "show", name).stdout
    assert (shown == text) if kind == "protobuf" else (json.loads(shown) == json.loads(text))
    assert caudal("schema", "show", "--id", str(again["id"])).stdout == shown


def test_schema_that_is_shown_can_be_registered_from_a_pipe(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.avsc", AVRO))
    shown = caudal("schema", "show", name).stdout
    copied = caudal.json("schema", "register", f"{name}-copy", "-", "--type", "avro", stdin=shown)
    assert copied == {"subject": f"{name}-copy", "version": 1, "id": _id(caudal, name), "new": True}


@pytest.mark.parametrize("kind", FORMATS)
def test_incompatible_schema_is_reported_with_each_difference_and_what_to_do_next(
    caudal: Caudal, write: Write, name: str, kind: str
) -> None:
    file, text, broken = FORMATS[kind]
    expected = {
        "avro": ["READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1"],
        "json": ["TYPE_CHANGED", "#/properties/id"],
        "protobuf": ["FIELD_SCALAR_KIND_CHANGED", "#/Order/1"],
    }
    caudal("schema", "register", name, write(file, text))
    output = caudal("schema", "register", name, write(file, broken), code=1).stderr
    for words in [*expected[kind], "version 1", "BACKWARD", "a new schema must read"]:
        assert words in output
    assert f"caudal schema diff {name}@1" in output
    assert f"caudal schema compatibility {name}" in output
    assert "Traceback" not in output


def test_invalid_schema_is_reported_in_one_line(caudal: Caudal, write: Write, name: str) -> None:
    output = caudal("schema", "register", name, write("x.avsc", {"type": "record", "name": "X"}), code=1).stderr
    assert output.startswith("✗ ")
    assert len(output.splitlines()) == 1


def test_references_and_metadata_are_registered_and_shown(caudal: Caudal, write: Write, name: str) -> None:
    money = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}
    order = {"type": "record", "name": "shop.Sale", "fields": [{"name": "price", "type": "shop.Money"}]}
    caudal("schema", "register", f"{name}-money", write("money.avsc", money))
    reference = ["--reference", f"shop.Money={name}-money:1"]
    caudal("schema", "register", name, write("sale.avsc", order), *reference, "--metadata", "owner=sales")
    shown = caudal.json("schema", "show", name, "--references")
    assert shown["references"] == [{"name": "shop.Money", "subject": f"{name}-money", "version": 1}]
    assert shown["reachable"] == shown["references"]
    assert shown["metadata"] == {"properties": {"owner": "sales"}}
    mentioned = caudal.json("schema", "show", f"{name}-money@1", "--references")
    assert [(item["subject"], item["version"]) for item in mentioned["referenced_by"]] == [(name, 1)]
    assert f"{name}-money" in caudal("schema", "show", name, "--references").stdout
    assert "refers to no other schema" in caudal("schema", "show", f"{name}-money", "--references").stderr


def test_metadata_makes_a_new_version_of_the_same_text(caudal: Caudal, write: Write, name: str) -> None:
    file = write("order.avsc", AVRO)
    caudal("schema", "register", name, file)
    again = caudal.json("schema", "register", name, file, "--metadata", "owner=sales")
    assert (again["version"], again["new"]) == (2, True)


def test_normalized_schema_is_the_same_in_any_order_of_keys(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("a.json", JSON), "--normalize")
    turned = dict(reversed(JSON.items()))
    assert caudal.json("schema", "register", name, write("b.json", turned), "--normalize")["new"] is False


# --- list, show ------------------------------------------------------------------------------------------------------


def test_list_has_version_id_type_and_level(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", f"{name}-a", write("order.avsc", AVRO))
    caudal("schema", "register", f"{name}-a", write("order.avsc", AVRO_WIDER))
    caudal("schema", "register", f"{name}-b", write("order.proto", PROTO))
    caudal("schema", "compatibility", f"{name}-b", "full")
    rows = caudal.json("schema", "list", name)
    assert [(row["subject"], row["version"], row["type"], row["level"], row["deleted"]) for row in rows] == [
        (f"{name}-a", 2, "AVRO", "BACKWARD", False),
        (f"{name}-b", 1, "PROTOBUF", "FULL", False),
    ]
    assert [row["version"] for row in caudal.json("schema", "list", f"{name}-a", "--versions")] == [1, 2]
    table = caudal("schema", "list", name).stdout
    assert "PROTOBUF" in table
    assert "Level" in table
    assert caudal.json("schema", "list", f"{name}-z") == []
    assert "caudal schema register" in caudal("schema", "list", f"{name}-z").stderr


def test_list_shows_what_was_deleted_only_when_asked(caudal: Caudal, write: Write, name: str) -> None:
    for schema in (AVRO, AVRO_WIDER):
        caudal("schema", "register", f"{name}-a", write("order.avsc", schema))
    caudal("schema", "register", f"{name}-b", write("order.avsc", AVRO))
    caudal("schema", "delete", f"{name}-a@1", f"{name}-b", "--yes")

    def rows(*options: str) -> list[tuple[str, int, bool]]:
        return [(r["subject"], r["version"], r["deleted"]) for r in caudal.json("schema", "list", name, *options)]

    assert rows() == rows("--versions") == [(f"{name}-a", 2, False)]
    assert rows("--deleted") == [(f"{name}-a", 2, False), (f"{name}-b", 1, True)]
    assert rows("--deleted", "--versions") == [
        (f"{name}-a", 1, True),
        (f"{name}-a", 2, False),
        (f"{name}-b", 1, True),
    ]


def test_contexts_are_listed_apart(caudal: Caudal, write: Write, name: str) -> None:
    context = name.replace("-", "")[-20:]
    caudal("schema", "register", f":.{context}:{name}", write("order.avsc", AVRO))
    for spelling in (context, f".{context}", f":.{context}:"):
        assert [row["subject"] for row in caudal.json("schema", "list", "--context", spelling)] == [
            f":.{context}:{name}"
        ]
    assert f":.{context}:{name}" in [row["subject"] for row in caudal.json("schema", "list")]
    assert caudal.json("schema", "list", name) == []
    assert json.loads(caudal("schema", "show", f":.{context}:{name}@1").stdout) == AVRO


@pytest.mark.parametrize("words", [["nobody-knows"], ["nobody-knows@3"], ["--id", "999999"]], ids="-".join)
def test_schema_that_is_not_there_is_reported_with_what_to_do_next(caudal: Caudal, words: list[str]) -> None:
    output = caudal("schema", "show", *words, code=1).stderr
    assert "not found" in output
    assert "caudal schema list" in output


def test_deleted_schema_is_shown_when_asked(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.avsc", AVRO))
    caudal("schema", "delete", name, "--yes")
    caudal("schema", "show", f"{name}@1", code=1)
    for place in (name, f"{name}@1"):
        assert json.loads(caudal("schema", "show", place, "--deleted").stdout) == AVRO


def test_schema_is_printed_as_it_is_in_a_pipe(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.proto", PROTO))
    assert caudal("schema", "show", name).stdout == PROTO


# --- diff ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
def test_diff_with_a_file_names_changes_and_marks_what_they_break(
    caudal: Caudal, write: Write, name: str, kind: str
) -> None:
    file, text, broken = FORMATS[kind]
    guilty = {"avro": "shop.Order.total", "json": "id", "protobuf": "Order.id"}[kind]
    caudal("schema", "register", name, write(file, text))
    compared = caudal.json("schema", "diff", name, write(file, broken))
    assert [change["name"] for change in compared["changes"] if change["breaks"] == ["backward"]] == [guilty]
    assert compared["compatibility"]["backward"]["compatible"] is False
    assert any(line.startswith("-") for line in compared["text"][2:])
    printed = caudal("schema", "diff", name, write(file, broken)).stdout
    assert "✗ backward" in printed
    assert f"--- {name}@1" in printed


def test_diff_of_versions_asks_in_both_directions(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.avsc", AVRO))
    caudal("schema", "register", name, write("order.avsc", AVRO_WIDER))
    compared = caudal.json("schema", "diff", f"{name}@1", f"{name}@2")
    (change,) = compared["changes"]
    assert (change["name"], change["before"], change["after"]) == ("shop.Order.id", "int", "long")
    assert change["breaks"] == ["forward"]
    (clash,) = compared["compatibility"]["forward"]["differences"]
    assert "the old schema has a type that cannot read the type of the new schema" in clash["words"]
    assert {way: output["compatible"] for way, output in compared["compatibility"].items()} == {
        "backward": True,
        "forward": False,
    }
    assert caudal("schema", "diff", name).stdout == caudal("schema", "diff", f"{name}@1", f"{name}@2").stdout
    caudal("schema", "compatibility", name, "FULL")
    assert caudal.json("schema", "diff", name)["changes"][0]["breaks"] == ["full"]
    caudal("schema", "compatibility", name, "NONE")
    assert caudal.json("schema", "diff", name)["compatibility"] == {}
    assert "checks nothing" in caudal("schema", "diff", name).stdout


def test_diff_of_different_formats_shows_the_texts(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.avsc", AVRO))
    printed = caudal("schema", "diff", name, write("order.proto", PROTO))
    assert "one is AVRO, the other PROTOBUF" in printed.stderr
    assert "+message Order {" in printed.stdout


def test_diff_with_references_uses_those_of_the_earlier_version(caudal: Caudal, write: Write, name: str) -> None:
    money = 'syntax = "proto3";\npackage shop;\n\nmessage Money {\n  int64 cents = 1;\n}\n'
    sale = 'syntax = "proto3";\npackage shop;\nimport "shop/money.proto";\nmessage Sale {\n  Money price = 1;\n}\n'
    caudal("schema", "register", f"{name}-money", write("money.proto", money))
    reference = ["--reference", f"shop/money.proto={name}-money:1"]
    caudal("schema", "register", name, write("sale.proto", sale), *reference)
    changed = sale.replace("}\n", "  bool paid = 2;\n}\n")
    (change,) = caudal.json("schema", "diff", name, write("sale.proto", changed))["changes"]
    assert (change["change"], change["name"], change["after"]) == ("added", "Sale.paid", "bool = 2")


def test_diff_of_equal_schemas_says_so(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.avsc", AVRO))
    assert "are the same" in caudal("schema", "diff", name, f"{name}@1").stderr


@pytest.mark.parametrize("kind", FORMATS)
def test_layout_of_a_file_is_no_difference(caudal: Caudal, write: Write, name: str, kind: str) -> None:
    file, text, _ = FORMATS[kind]
    other = f"// words\n{text}\n" if kind == "protobuf" else json.dumps(json.loads(text), indent=7)
    caudal("schema", "register", name, write(file, text))
    assert (
        "are the same" in caudal("schema", "diff", name, write(file, other.replace('"Order"', '"shop.Order"'))).stderr
    )


def test_diff_of_a_single_version_asks_for_another(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.avsc", AVRO))
    assert "another version or a file" in _flat(caudal("schema", "diff", name, code=2).stderr)


# --- check -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
def test_check_tells_by_its_exit_code(caudal: Caudal, write: Write, name: str, kind: str) -> None:
    file, text, broken = FORMATS[kind]
    assert "has no versions yet" in caudal("schema", "check", name, write(file, text)).stderr
    caudal("schema", "register", name, write(file, text))
    assert "no versions" not in caudal("schema", "check", name, write(file, text)).stderr
    output = caudal("schema", "check", name, write(file, broken), code=1).stderr
    assert "may not follow version 1" in output
    judged = caudal.json("schema", "check", name, write(file, broken), code=1)
    assert (judged["compatible"], judged["level"], judged["version"]) == (False, "BACKWARD", 1)
    assert all(item["type"] and item["path"] and item["words"] for item in judged["differences"])


def test_check_compares_with_one_version_or_with_those_of_the_level(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.avsc", AVRO))
    caudal("schema", "compatibility", name, "NONE")
    caudal("schema", "register", name, write("order.avsc", AVRO_BROKEN))
    caudal("schema", "compatibility", name, "BACKWARD")
    file = write("order.avsc", AVRO_BROKEN)
    caudal("schema", "check", name, file)
    caudal("schema", "check", name, file, "--version", "latest")
    caudal("schema", "check", name, file, "--version", "1", code=1)
    caudal("schema", "compatibility", name, "BACKWARD_TRANSITIVE")
    caudal("schema", "check", name, file, code=1)
    assert "not found" in caudal("schema", "check", name, file, "--version", "9", code=1).stderr


def test_check_of_no_schema_fails(caudal: Caudal, write: Write, name: str) -> None:
    output = caudal("schema", "check", name, write("order.avsc", '{"type": "nothing"}'), code=1).stderr
    assert "✗" in output
    assert "Traceback" not in output


# --- delete ----------------------------------------------------------------------------------------------------------


def test_delete_asks_first(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.avsc", AVRO))
    assert f"Delete {name}?" in caudal("schema", "delete", name, stdin="n\n", code=1).stderr
    caudal("schema", "show", name)
    caudal("schema", "delete", name, stdin="y\n")
    caudal("schema", "show", name, code=1)


def test_delete_hides_and_permanent_removes(caudal: Caudal, write: Write, name: str) -> None:
    for schema in (AVRO, AVRO_WIDER):
        caudal("schema", "register", name, write("order.avsc", schema))
    output = caudal("schema", "delete", f"{name}@1", "--yes").stderr
    assert f"{name} version 1 deleted" in output
    assert "--permanent" in output
    assert "soft deleted" in caudal("schema", "delete", f"{name}@1", "--yes", code=1).stderr
    output = caudal("schema", "delete", name, "--permanent", "--yes").stderr
    assert "deleted for good" in output
    assert caudal.json("schema", "list", name, "--deleted") == []


def test_delete_of_what_others_mention_tells_who_they_are(caudal: Caudal, write: Write, name: str) -> None:
    money = {"type": "record", "name": "shop.Coin", "fields": [{"name": "cents", "type": "long"}]}
    order = {"type": "record", "name": "shop.Sold", "fields": [{"name": "price", "type": "shop.Coin"}]}
    caudal("schema", "register", f"{name}-coin", write("coin.avsc", money))
    caudal("schema", "register", name, write("sold.avsc", order), "--reference", f"shop.Coin={name}-coin:1")
    for place in (f"{name}-coin", f"{name}-coin@1"):
        output = caudal("schema", "delete", place, "--yes", code=1).stderr
        assert f"{place} was not deleted: other schemas refer to it" in output
        assert f"caudal schema delete {name}@1" in output
    caudal("schema", "delete", f"{name}@1", f"{name}-coin@1", "--yes")
    for place in (f"{name}-coin", f"{name}-coin@1"):
        output = caudal("schema", "delete", place, "--permanent", "--yes", code=1).stderr
        assert f"{place} was not deleted: other schemas refer to it" in output
        assert f"caudal schema delete {name}@1 --permanent" in output
    caudal("schema", "delete", f"{name}@1", f"{name}-coin@1", "--permanent", "--yes")


def test_delete_goes_on_after_a_failure_and_tells_it(caudal: Caudal, write: Write, name: str) -> None:
    caudal("schema", "register", name, write("order.avsc", AVRO))
    output = caudal("schema", "delete", f"{name}-missing", name, "--yes", code=1).stderr
    assert f"{name}-missing was not deleted" in output
    assert f"{name} version 1 deleted" in output


# --- compatibility ---------------------------------------------------------------------------------------------------


def test_level_is_shown_set_and_unset(caudal: Caudal, name: str) -> None:
    before = caudal.json("schema", "compatibility", name)
    assert (before["level"], before["inherited"]) == ("BACKWARD", True)
    assert "is now FORWARD_TRANSITIVE" in caudal("schema", "compatibility", name, "forward_transitive").stderr
    after = caudal.json("schema", "compatibility", name)
    assert (after["level"], after["inherited"]) == ("FORWARD_TRANSITIVE", False)
    assert "upgrade producers first" in after["meaning"]
    assert "this subject" in caudal("schema", "compatibility", name).stdout
    caudal("schema", "compatibility", name, "--unset")
    assert caudal.json("schema", "compatibility", name)["inherited"] is True
    caudal("schema", "compatibility", name, "--unset")


def test_level_of_all_subjects_is_shown_set_and_unset(caudal: Caudal, name: str) -> None:
    assert caudal.json("schema", "compatibility")["level"] == "BACKWARD"
    try:
        caudal("schema", "compatibility", "FULL")
        assert caudal.json("schema", "compatibility", name)["level"] == "FULL"
        assert "All subjects" in caudal("schema", "compatibility").stdout
    finally:
        caudal("schema", "compatibility", "--unset")
    assert caudal.json("schema", "compatibility")["level"] == "BACKWARD"


def _id(caudal: Caudal, subject: str) -> int:
    return int(caudal.json("schema", "show", subject)["id"])


def _flat(text: str) -> str:
    return " ".join(text.replace("│", " ").split())
