"""Tags inside schemas: `confluent:tags` in Avro's records and fields and in JSON Schema's properties, and options in
Protobuf.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from schema_registry.errors import RegistryError, invalid_schema
from schema_registry.formats.schema import Schema, SchemaType
from schema_registry.models import SchemaEntity, SchemaTags

if TYPE_CHECKING:
    from schema_registry.formats.protobuf_tags import TagChange

TAGS = "confluent:tags"
_FIELD = "sr_field"
_RECORD = "sr_record"
_CHANGES_MAX = 500
_STEPS_MAX = 300
"""Longer paths match nothing: schemas do not nest that deep."""
_COMBINED = {"allof": "allOf", "anyof": "anyOf", "oneof": "oneOf"}
_BELOW = {"array": "items", "not": "not", "if": "if", "then": "then", "else": "else"}
_PASSED = frozenset({"string", "number", "boolean", "null", "const", "enum", "conditional"})


def edit(schema: Schema, text: str, *, add: Sequence[SchemaTags], remove: Sequence[SchemaTags]) -> str:
    """A schema's text with some tags added and others removed; raises 42201 if a path matches nothing."""
    if not add and not remove:
        return text
    if schema.schema_type is SchemaType.PROTOBUF:
        return _edit_protobuf(schema, add, remove)
    document = json.loads(text)
    find = _make_finder(schema.schema_type, document)
    for wanted in add:
        _change(find(wanted), wanted, is_added=True)
    for wanted in remove:
        _change(find(wanted), wanted, is_added=False)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _edit_protobuf(schema: Schema, add: Sequence[SchemaTags], remove: Sequence[SchemaTags]) -> str:
    from schema_registry.formats.protobuf import ProtobufSchema
    from schema_registry.formats.protobuf_tags import change_tags

    assert isinstance(schema, ProtobufSchema)
    changes = [_to_change(item, is_added=True) for item in add] + [_to_change(item, is_added=False) for item in remove]
    try:
        return change_tags(schema, changes)
    except KeyError as error:
        raise _no_match(error.args[0]) from None


def _to_change(item: SchemaTags, *, is_added: bool) -> "TagChange":
    from schema_registry.formats.protobuf_tags import TagChange

    return TagChange(
        path=item.schema_entity.entity_path,
        is_field=item.schema_entity.entity_type.lower() == _FIELD,
        add=item.tags if is_added else (),
        remove=() if is_added else item.tags,
    )


def found_in(schema: Schema, text: str, *, wanted: Sequence[str] = ("*",)) -> list[SchemaTags]:
    """The records and fields with one of the wanted tags, and all their tags; `*` matches any tag."""
    found = _protobuf_tags(schema) if schema.schema_type is SchemaType.PROTOBUF else _json_tags(schema, text)
    return [item for item in found if "*" in wanted or not set(wanted).isdisjoint(item.tags)]


def present_in(schema: Schema, text: str, wanted: Iterable[SchemaTags]) -> list[SchemaTags]:
    """Those tags whose records and fields the schema still has."""
    if schema.schema_type is SchemaType.PROTOBUF:
        from schema_registry.formats.protobuf import ProtobufSchema
        from schema_registry.formats.protobuf_tags import has

        assert isinstance(schema, ProtobufSchema)
        return [item for item in wanted if has(schema, _to_change(item, is_added=True))]
    find = _make_finder(schema.schema_type, json.loads(text))
    return [item for item in wanted if next(find(item), None) is not None]


def _json_tags(schema: Schema, text: str) -> list[SchemaTags]:
    document = json.loads(text)
    is_avro = schema.schema_type is SchemaType.AVRO
    entities = _avro_entities(document, "") if is_avro else _json_entities(document, "object")
    return [
        _tags_at(path, kind, [str(tag) for tag in node[TAGS]])
        for path, kind, node in entities
        if isinstance(node.get(TAGS), list)
    ]


def _protobuf_tags(schema: Schema) -> list[SchemaTags]:
    from schema_registry.formats.protobuf import ProtobufSchema
    from schema_registry.formats.protobuf_tags import tags_of

    assert isinstance(schema, ProtobufSchema)
    return [_tags_at(item.path, _FIELD if item.is_field else _RECORD, [*item.add]) for item in tags_of(schema)]


def _tags_at(path: str, kind: str, tags: list[str]) -> SchemaTags:
    return SchemaTags(schema_entity=SchemaEntity(entity_path=path, entity_type=kind), tags=tags)


def check_number(changes: Sequence[SchemaTags]) -> None:
    """Refuse more changes than one request may have."""
    if len(changes) > _CHANGES_MAX:
        raise invalid_schema(
            f"The request changes the tags of {len(changes)} records and fields, but at most {_CHANGES_MAX} are allowed"
        )


def _no_match(path: str) -> RegistryError:
    return invalid_schema(f"No matching path '{path}' found in the schema")


def _change(nodes: Iterable[dict[str, Any]], wanted: SchemaTags, *, is_added: bool) -> None:
    node = next(iter(nodes), None)
    if node is None:
        raise _no_match(wanted.schema_entity.entity_path)
    removed = frozenset() if is_added else frozenset(wanted.tags)
    tags = [tag for tag in node.get(TAGS, []) if tag not in removed]
    if is_added:
        tags = list(dict.fromkeys([*tags, *wanted.tags]))
    if tags:
        node[TAGS] = tags
    else:
        node.pop(TAGS, None)


def _make_finder(schema_type: SchemaType, document: Any) -> Callable[[SchemaTags], Iterator[dict[str, Any]]]:
    """A function that finds the nodes at the path of a tag."""
    if schema_type is not SchemaType.AVRO:
        return lambda wanted: _find_json(document, wanted)
    by_name: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for path, kind, node in _avro_entities(document, ""):
        by_name[kind, path.rpartition(".")[2]].append((path, node))

    def find(wanted: SchemaTags) -> Iterator[dict[str, Any]]:
        path = wanted.schema_entity.entity_path.lstrip(".")
        for found, node in by_name[wanted.schema_entity.entity_type.lower(), path.rpartition(".")[2]]:
            if found == path or found.endswith(f".{path}"):
                yield node

    return find


def _avro_entities(schema: Any, namespace: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """All records and fields with their paths. The text was parsed before, so its nesting is bounded."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _avro_entities(branch, namespace)
    if not isinstance(schema, dict):
        return
    if schema.get("type") not in ("record", "error"):
        for key in ("type", "items", "values"):
            if isinstance(schema.get(key), dict | list):
                yield from _avro_entities(schema[key], namespace)
        return
    name = str(schema["name"])
    if "." in name:
        namespace = name.rpartition(".")[0]
    else:
        namespace = str(schema.get("namespace", namespace))
        name = f"{namespace}.{name}" if namespace else name
    yield name, _RECORD, schema
    for field in schema["fields"]:
        yield f"{name}.{field['name']}", _FIELD, field
        yield from _avro_entities(field["type"], namespace)


def _json_entities(schema: Any, path: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """An object and its properties with their paths."""
    if not isinstance(schema, dict):
        return
    if path == "object":
        yield path, _RECORD, schema
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            yield f"{path}.{name}", _FIELD, inner
            yield from _json_entities(inner, f"{path}.{name}.object")
    if isinstance(schema.get("items"), dict):
        yield from _json_entities(schema["items"], f"{path.removesuffix('.object')}.array.object")


def _find_json(document: Any, wanted: SchemaTags) -> Iterator[dict[str, Any]]:
    """Follow a path of property names, with Confluent's words for the schemas between them."""
    steps = wanted.schema_entity.entity_path.lstrip(".").split(".", _STEPS_MAX)
    if len(steps) > _STEPS_MAX:
        return iter(())
    return (node for node in _nodes_at(document, steps) if isinstance(node, dict))


def _nodes_at(node: Any, steps: Sequence[str]) -> Iterator[Any]:
    """The nodes at a path. Our numbers of branches may differ from Confluent's, so each branch is tried."""
    if not steps:
        yield node
        return
    if not isinstance(node, dict):
        return
    step, rest = steps[0], steps[1:]
    properties = node.get("properties")
    if isinstance(properties, dict) and step in properties:
        yield from _nodes_at(properties[step], rest)
    word = step.lower()
    if word in _COMBINED:
        branches = node.get(_COMBINED[word])
        for branch in branches if isinstance(branches, list) else [node]:
            yield from _nodes_at(branch, rest[1:])
    elif word in _BELOW:
        yield from _nodes_at(node.get(_BELOW[word]), rest)
    elif word == "object":
        yield from _nodes_at(node, rest) if _is_object(node) else ()
    elif word in _PASSED or node.get("title") == step:
        yield from _nodes_at(node, rest)


def _is_object(node: dict[str, Any]) -> bool:
    kind = node.get("type")
    return "properties" in node or kind == "object" or (isinstance(kind, list) and "object" in kind)
