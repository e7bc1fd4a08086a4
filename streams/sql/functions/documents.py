"""Functions of JSON texts and of URLs."""

import re
from typing import Final

from streams.model.types import TIME, TIMESTAMP, Array, Map, SqlType, Struct, contains, quoted
from streams.sql.casts import time_text
from streams.sql.expressions import sql_text
from streams.sql.functions.model import Call, Function, Overload, overload

_PLAIN_PATH: Final = re.compile(r"\$(?:\.[A-Za-z_]\w*|\[\d{1,9}\])*")


def _json(name: str, description: str, *overloads: Overload) -> Function:
    return Function(name, "JSON", description, overloads)


def _url(name: str, description: str, *overloads: Overload) -> Function:
    return Function(name, "URL", description, overloads)


def _extracted(call: Call) -> str:
    """Spark reads plain paths itself, but cannot tell a null in the document from no such field."""
    text, path = call.text("json"), call.arguments["path"].literal
    if not isinstance(path, str) or not _PLAIN_PATH.fullmatch(path):
        return f"caudal_extract_json_field({text}, {call.text('path')})"
    place = sql_text(path)
    null = f"is_variant_null(variant_get(try_parse_json({text}), {place}, 'variant'))"
    return f"coalesce(get_json_object({text}, {place}), if({null}, 'null', null))"


def _to_json(call: Call) -> str:
    """Only arrays and the like can be written: the brackets of an array around the value are cut off."""
    value = _writable(call.text("value"), call.types["T"], 0)
    written = f"to_json(array({value}), map('ignoreNullFields', 'false'))"
    return rf"regexp_replace({written}, '^.|.$', '')"


def _writable(text: str, kind: SqlType, depth: int) -> str:
    """A value as `to_json` has to get it: fields and keys in order, times as ksqlDB writes them."""
    item = f"item{depth}"
    match kind:
        case Array(element):
            return f"transform({text}, {item} -> {_writable(item, element, depth + 1)})" if _changes(element) else text
        case Map(key, value):
            entry = (
                f"struct({_writable(f'{item}.key', key, depth + 1)}, {_writable(f'{item}.value', value, depth + 1)})"
            )
            order = "(one, other) -> if(one.key < other.key, -1, 1)"
            return f"map_from_entries(array_sort(transform(map_entries({text}), {item} -> {entry}), {order}))"
        case Struct(fields) if fields:
            written = ", ".join(
                f"{sql_text(field.name)}, {_writable(f'{text}.{quoted(field.name)}', field.type, depth)}"
                for field in sorted(fields, key=lambda field: field.name)
            )
            return f"if({text} is null, null, named_struct({written}))"
        case _ if kind == TIMESTAMP:
            return f"""date_format({text}, "yyyy-MM-dd'T'HH:mm:ss.SSS")"""
        case _:
            return time_text(text) if kind == TIME else text


def _changes(kind: SqlType) -> bool:
    return any(contains(kind, part) for part in (TIMESTAMP, TIME, Map, Struct))


def _part(name: str, description: str, write: str, result: str = "STRING") -> Function:
    return _url(name, description, overload("url STRING", result, write))


def _decoded(text: str) -> str:
    """Without the escapes, but a plus sign is itself."""
    return f"try_url_decode(replace({text}, '+', '%2B'))"


_QUERY: Final = _decoded("try_parse_url({url}, 'QUERY')")
_PARAMETERS: Final = f"filter(split({_QUERY}, '&'), item -> substring_index(item, '=', 1) = {{name}})"

FUNCTIONS: Final = (
    _json(
        "EXTRACTJSONFIELD",
        "What is at a path of a JSON document: texts as they are, anything else as JSON.",
        overload("json STRING, path STRING", "STRING", _extracted),
    ),
    _json(
        "IS_JSON_STRING",
        "Whether a text is a JSON document.",
        overload("json STRING", "BOOLEAN", "(try_parse_json({json}) is not null)"),
    ),
    _json(
        "JSON_ARRAY_CONTAINS",
        "Whether an array in JSON contains a value of the same type.",
        overload("json STRING, value J", "BOOLEAN", "caudal_json_array_contains({json}, to_json(array({value})))"),
    ),
    _json(
        "JSON_ARRAY_LENGTH",
        "The number of items of an array in JSON.",
        overload("json STRING", "INT", "json_array_length({json})"),
    ),
    _json(
        "JSON_CONCAT",
        "JSON objects as one; arrays, and anything else, as one array.",
        overload("values STRING...", "STRING", "caudal_json_concat(array({values}))"),
    ),
    _json(
        "JSON_ITEMS",
        "The items of an array in JSON, each as JSON.",
        overload("json STRING", "ARRAY<STRING>", "caudal_json_items({json})"),
    ),
    _json(
        "JSON_KEYS",
        "The names of the fields of a JSON object.",
        overload("json STRING", "ARRAY<STRING>", "json_object_keys({json})"),
    ),
    _json(
        "JSON_RECORDS",
        "The fields of a JSON object as a map.",
        overload(
            "json STRING",
            "MAP<STRING, STRING>",
            "transform_values(from_json({json}, 'map<string,string>'), (key, value) -> coalesce(value, 'null'))",
        ),
    ),
    _json("TO_JSON_STRING", "Any value as JSON, fields and keys in order.", overload("value T", "STRING", _to_json)),
    _part("URL_ENCODE_PARAM", "A text as it can stand in a query of a URL.", "url_encode({url})"),
    _part("URL_DECODE_PARAM", "A text without the escapes of a URL.", "try_url_decode({url})"),
    _part("URL_EXTRACT_PROTOCOL", "The protocol of a URL.", "try_parse_url({url}, 'PROTOCOL')"),
    _part("URL_EXTRACT_HOST", "The host of a URL.", "try_parse_url({url}, 'HOST')"),
    _part("URL_EXTRACT_PATH", "The path of a URL.", _decoded("try_parse_url({url}, 'PATH')")),
    _part("URL_EXTRACT_QUERY", "The query of a URL.", _QUERY),
    _part("URL_EXTRACT_FRAGMENT", "The fragment of a URL.", _decoded("try_parse_url({url}, 'REF')")),
    _part(
        "URL_EXTRACT_PORT",
        "The port of a URL.",
        "try_cast(regexp_extract(try_parse_url({url}, 'AUTHORITY'), ':([0-9]+)$', 1) as int)",
        "INT",
    ),
    _url(
        "URL_EXTRACT_PARAMETER",
        "The value of a parameter of a URL.",
        overload(
            "url STRING, name STRING",
            "STRING",
            f"transform({_PARAMETERS}, item -> if(contains(item, '='), substring(item, instr(item, '=') + 1), ''))[0]",
        ),
    ),
)
