"""Functions of texts and bytes."""

import re
from collections.abc import Callable
from typing import Final

from streams.model.types import BYTES
from streams.sql.errors import TypeProblem
from streams.sql.expressions import sql_text
from streams.sql.functions.model import Call, Function, Overload, overload

_CODE_POINTS: Final = "characters outside the basic plane count as one, in Java as two"
_LENGTH_MAX: Final = 1_000_000
"""The length that a text may be padded to: more would take Spark's memory."""
_PATTERN: Final = "a pattern that Java cannot read ends the query"
_SURROGATES: Final = (
    r"'^(\\\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})+$'"
)
_ONE_BY_ONE: Final = "regexp_extract_all({0}, '(?s).', 0)"


def _string(name: str, description: str, *overloads: Overload) -> Function:
    return Function(name, "STRING", description, overloads)


def _regex(name: str, description: str, *overloads: Overload) -> Function:
    return Function(name, "REGULAR EXPRESSION", description, overloads)


def _concat(call: Call) -> str:
    texts = [one.text for one in call.repeated]
    if call.result == BYTES:
        items = ", ".join(f"coalesce({text}, X'')" for text in texts)
        return f"concat({items})"
    return f"concat_ws('', {', '.join(texts)})"


def _concat_ws(call: Call) -> str:
    separator, items = call.text("separator"), ", ".join(one.text for one in call.repeated)
    if call.result != BYTES:
        return f"concat_ws({separator}, {items})"
    joined = (
        f"aggregate(filter(array({items}), item -> item is not null), cast(null as binary),"
        f" (all, item) -> if(all is null, item, concat(all, {separator}, item)))"
    )
    return f"if({separator} is null, null, coalesce({joined}, X''))"


def _quoted_delimiter(text: str) -> str:
    """A text that Java's regular expressions take literally."""
    return rf"concat('\\Q', replace({text}, '\\E', '\\E\\\\E\\Q'), '\\E')"


def _split(text: str, delimiter: str) -> str:
    parts = f"split({text}, {_quoted_delimiter(delimiter)}, -1)"
    return f"case when {delimiter} != '' or {text} = '' then {parts} else {_ONE_BY_ONE.format(text)} end"


def _split_bytes(call: Call) -> str:
    text, delimiter = (f"decode({call.text(name)}, 'ISO-8859-1')" for name in ("value", "delimiter"))
    return f"transform({_split(text, delimiter)}, item -> encode(item, 'ISO-8859-1'))"


def _split_to_map(call: Call) -> str:
    text, entries, pair = call.text("text"), call.text("entry_delimiter"), call.text("pair_delimiter")
    parts = f"filter(split({text}, {_quoted_delimiter(entries)}, -1), item -> instr(item, {pair}) > 0)"
    pairs = f"transform({parts}, item -> split(item, {_quoted_delimiter(pair)}, -1))"
    result = f"map_from_entries(transform({pairs}, item -> named_struct('key', item[0], 'value', item[1])))"
    return f"if({entries} = '' or {pair} = '' or {entries} = {pair}, null, {result})"


def _regex_group(call: Call, extract: str, none: str) -> str:
    """A group that the pattern does not have is NULL; Spark would end the query."""
    pattern, text = call.text("pattern"), call.text("text")
    group = call.arguments.get("group")
    if group is None:
        return extract.format(text=text, pattern=pattern, group="0")
    literal = call.arguments["pattern"].literal
    if isinstance(literal, str) and isinstance(group.literal, int):
        if not 0 <= group.literal <= _groups(literal):
            return none
        return extract.format(text=text, pattern=pattern, group=group.text)
    padded = f"concat({pattern}, repeat('()', least({group.text}, 100)))"
    found = extract.format(text=text, pattern=padded, group=group.text)
    return f"if({group.text} between 0 and 100, {found}, null)"


def _groups(pattern: str) -> int:
    """How many groups a regular expression has."""
    plain = re.sub(r"\\Q.*?(?:\\E|$)|\\.|\[(?:\\.|[^\]\\])*\]", "", pattern, flags=re.DOTALL)
    return len(re.findall(r"\((?!\?)|\(\?<(?![=!])", plain))


def _extract(call: Call) -> str:
    return _regex_group(
        call, "if({text} rlike {pattern}, regexp_extract({text}, {pattern}, {group}), null)", "cast(null as string)"
    )


def _extract_all(call: Call) -> str:
    return _regex_group(call, "regexp_extract_all({text}, {pattern}, {group})", "cast(null as array<string>)")


def _masked(part: str, call: Call) -> str:
    """`mask` of a part of the text, with what replaces upper and lower case, digits and all others."""
    if "upper" not in call.arguments:
        return f"mask({part}, 'X', 'x', 'n', '-')"
    texts = []
    for name in ("upper", "lower", "digit", "other"):
        given = call.arguments[name]
        if given.text == "cast(null as string)":
            texts.append(given.text)
        elif isinstance(given.literal, str) and len(given.literal) == 1:
            texts.append(sql_text(given.literal))
        else:
            raise TypeProblem(f"MASK needs a single character or NULL for {name}, as a literal")
    return f"mask({part}, {', '.join(texts)})"


def _mask(name: str, description: str, parts: Callable[[Call], str], count: str = "") -> Function:
    return _string(
        name,
        description,
        overload(f"text STRING{count}", "STRING", parts),
        overload(f"text STRING{count}, upper STRING, lower STRING, digit STRING, other STRING", "STRING", parts),
    )


def _masked_ends(*, left: bool, keep: bool) -> Callable[[Call], str]:
    def write(call: Call) -> str:
        text, count = call.text("text"), call.text("count")
        if left:
            parts = [f"left({text}, {count})", f"substring({text}, {count} + 1)"]
        else:
            parts = [f"substring({text}, 1, greatest(length({text}) - {count}, 0))", f"right({text}, {count})"]
        masked = 0 if left != keep else 1
        parts[masked] = _masked(parts[masked], call)
        return f"if({count} < 0, null, concat({parts[0]}, {parts[1]}))"

    return write


_TO_BYTES: Final = (
    r"case lower({encoding}) when 'hex' then if(length({text}) % 2 = 0, unhex({text}), null)"
    r" when 'utf8' then cast({text} as binary)"
    r" when 'ascii' then cast(regexp_replace({text}, '[^\\x00-\\x7F]', '?') as binary)"
    r" when 'base64' then try_to_binary({text}, 'base64') end"
)
_ASCII_TEXT: Final = r"regexp_replace(decode({bytes}, 'ISO-8859-1'), '[^\\x00-\\x7F]', '\uFFFD')"
_FROM_BYTES: Final = (
    "case lower({encoding}) when 'hex' then hex({bytes}) when 'utf8' then make_valid_utf8(cast({bytes} as string))"
    f" when 'ascii' then {_ASCII_TEXT} when 'base64' then base64({{bytes}}) end"
)
_HEX: Final = (
    r"case when {text} like '0x%' then concat(if(length({text}) % 2 != 0, '0', ''), substring({text}, 3))"
    r" when {text} rlike '^[xX]\'.*\'$' then substring({text}, 3, length({text}) - 3) else {text} end"
)


def _encode(call: Call) -> str:
    text, given, wanted = call.text("text"), call.text("input_encoding"), call.text("output_encoding")
    stripped = f"if(lower({given}) = 'hex', {_HEX.replace('{text}', text)}, {text})"
    read = _TO_BYTES.replace("{text}", stripped).replace("{encoding}", given)
    written = (
        f"case lower({wanted}) when 'hex' then lower(hex(item)) when 'utf8' then make_valid_utf8(cast(item as string))"
        f" when 'ascii' then {_ASCII_TEXT.replace('{bytes}', 'item')}"
        r" when 'base64' then replace(base64(item), '\r\n', '') end"
    )
    return f"if(lower({given}) = lower({wanted}), null, transform(array({read}), item -> {written})[0])"


def _from_bytes(name: str, size: int, result: str, write: str) -> Function:
    little = "unhex(array_join(reverse(regexp_extract_all(hex({bytes}), '..', 0)), ''))"
    checked = f"case when length({{bytes}}) = {size} then {write} end"
    ordered = (
        f"case upper({{byte_order}}) when 'BIG_ENDIAN' then {checked}"
        f" when 'LITTLE_ENDIAN' then {checked.replace('{bytes}', little)} end"
    )
    return Function(
        name,
        "CONVERSIONS",
        f"The {result} that {size} bytes hold.",
        (overload("bytes BYTES", result, checked), overload("bytes BYTES, byte_order STRING", result, ordered)),
    )


FUNCTIONS: Final = (
    _string(
        "CHR",
        "The character with a code point, or of a text such as \\u004B.",
        overload(
            "code INT",
            "STRING",
            "if({code} between 0 and 55295 or {code} between 57344 and 1114111,"
            " decode(unhex(lpad(hex({code}), 8, '0')), 'UTF-32'), null)",
            difference="halves of a pair of UTF-16 are NULL",
        ),
        overload(
            "code STRING",
            "STRING",
            rf"if({{code}} rlike {_SURROGATES}, decode(unhex(replace({{code}}, '\\u', '')), 'UTF-16BE'), null)",
        ),
    ),
    _string("CONCAT", "All texts, or bytes, as one; NULL adds nothing.", overload("values B...", "B", _concat)),
    _string(
        "CONCAT_WS",
        "All texts, or bytes, as one, with a separator in between.",
        overload("separator B, values B...", "B", _concat_ws),
    ),
    _string("ELT", "The n-th of the texts.", overload("n INT, values STRING...", "STRING", "elt({n}, {values})")),
    _string(
        "FIELD",
        "The position of a text among others; 0 if it is not there.",
        overload(
            "text STRING, values STRING...",
            "INT",
            "cast(coalesce(array_position(array({values}), {text}), 0) as int)",
        ),
    ),
    _string(
        "ENCODE",
        "A text in another encoding: hex, utf8, ascii or base64.",
        overload("text STRING, input_encoding STRING, output_encoding STRING", "STRING", _encode),
    ),
    Function(
        "TO_BYTES",
        "CONVERSIONS",
        "The bytes that a text stands for: hex, utf8, ascii or base64.",
        (overload("text STRING, encoding STRING", "BYTES", _TO_BYTES, difference="hex may be in lower case"),),
    ),
    Function(
        "FROM_BYTES",
        "CONVERSIONS",
        "Bytes as a text: hex, utf8, ascii or base64.",
        (overload("bytes BYTES, encoding STRING", "STRING", _FROM_BYTES),),
    ),
    _string(
        "INITCAP",
        "Each word with one capital letter, at its beginning.",
        overload(
            "text STRING",
            "STRING",
            r"array_join(transform(regexp_extract_all({text}, '\\s+|\\S+', 0),"
            " item -> concat(upper(left(item, 1)), lower(substring(item, 2)))), '')",
        ),
    ),
    _string(
        "INSTR",
        "The position of the n-th occurrence in a text, from a position on, or backwards from the end; 0 if absent.",
        overload("text STRING, part STRING", "INT", "coalesce(instr({text}, {part}), 0)", difference=_CODE_POINTS),
        overload("text STRING, part STRING, position INT", "INT", "caudal_instr({text}, {part}, {position}, 1)"),
        overload(
            "text STRING, part STRING, position INT, occurrence INT",
            "INT",
            "caudal_instr({text}, {part}, {position}, {occurrence})",
        ),
    ),
    _string("LCASE", "A text in lower case.", overload("text STRING", "STRING", "lower({text})")),
    _string("UCASE", "A text in upper case.", overload("text STRING", "STRING", "upper({text})")),
    _string(
        "LEN",
        "The length of a text or of bytes.",
        overload("value B", "INT", "length({value})", difference=_CODE_POINTS),
    ),
    *(
        _string(
            name,
            f"A text, or bytes, filled up from the {side} to a length, or cut to it.",
            overload(
                "value B, length INT, padding B",
                "B",
                f"if({{length}} not between 0 and {_LENGTH_MAX} or length({{padding}}) = 0, null,"
                f" {name.lower()}({{value}}, {{length}}, {{padding}}))",
                difference=f"a length above {_LENGTH_MAX} is NULL; {_CODE_POINTS}",
            ),
        )
        for name, side in {"LPAD": "left", "RPAD": "right"}.items()
    ),
    _mask("MASK", "A text whose characters are replaced.", lambda call: _masked(call.text("text"), call)),
    *(
        _mask(
            f"MASK_{'KEEP_' if keep else ''}{side}",
            f"A text whose {'characters are replaced but the' if keep else ''} {'first' if side == 'LEFT' else 'last'}"
            f" characters{'' if keep else ' are replaced'}.".replace("  ", " "),
            _masked_ends(left=side == "LEFT", keep=keep),
            ", count INT",
        )
        for keep in (False, True)
        for side in ("LEFT", "RIGHT")
    ),
    _string("MD5", "The MD5 hash of a text, in hex.", overload("text STRING", "STRING", "md5({text})")),
    _regex(
        "REGEXP_EXTRACT",
        "The first part of a text that matches a pattern, or a group of it.",
        overload("pattern STRING, text STRING", "STRING", _extract, difference=_PATTERN),
        overload(
            "pattern STRING, text STRING, group INT",
            "STRING",
            _extract,
            difference=f"a group that takes no part is ''; {_PATTERN}",
        ),
    ),
    _regex(
        "REGEXP_EXTRACT_ALL",
        "All parts of a text that match a pattern, or a group of it.",
        overload("pattern STRING, text STRING", "ARRAY<STRING>", _extract_all, difference=_PATTERN),
        overload(
            "pattern STRING, text STRING, group INT",
            "ARRAY<STRING>",
            _extract_all,
            difference=f"a group that takes no part is ''; {_PATTERN}",
        ),
    ),
    _regex(
        "REGEXP_REPLACE",
        "A text in which all that matches a pattern is replaced.",
        overload(
            "text STRING, pattern STRING, new STRING",
            "STRING",
            "regexp_replace({text}, {pattern}, {new})",
            difference=_PATTERN,
        ),
    ),
    _regex(
        "REGEXP_SPLIT_TO_ARRAY",
        "The parts of a text between what matches a pattern.",
        overload("text STRING, pattern STRING", "ARRAY<STRING>", "split({text}, {pattern}, -1)", difference=_PATTERN),
    ),
    _string(
        "REPLACE",
        "A text in which a part is replaced wherever it occurs.",
        overload(
            "text STRING, old STRING, new STRING",
            "STRING",
            "case when {old} is null then null when {old} != '' then replace({text}, {old}, {new})"
            " when {text} = '' then {new}"
            f" else concat({{new}}, array_join({_ONE_BY_ONE.format('{text}')}, {{new}}), {{new}}) end",
        ),
    ),
    _string(
        "SPLIT",
        "The parts of a text, or of bytes, between delimiters.",
        overload(
            "text STRING, delimiter STRING",
            "ARRAY<STRING>",
            lambda call: _split(call.text("text"), call.text("delimiter")),
        ),
        overload("value BYTES, delimiter BYTES", "ARRAY<BYTES>", _split_bytes),
    ),
    Function(
        "SPLIT_TO_MAP",
        "MAP",
        "The pairs of a text as a map.",
        (overload("text STRING, entry_delimiter STRING, pair_delimiter STRING", "MAP<STRING, STRING>", _split_to_map),),
    ),
    _string(
        "SUBSTRING",
        "A part of a text, or of bytes, from a position on, which may count from the end.",
        *(
            overload(
                f"value B, position INT{length}",
                "B",
                f"substring({{value}}, if({{position}} < -length({{value}}), 1, {{position}}){write})",
                difference=_CODE_POINTS,
            )
            for length, write in {"": "", ", length INT": ", {length}"}.items()
        ),
    ),
    _string(
        "TRIM",
        "A text without the spaces at both ends.",
        overload("text STRING", "STRING", r"regexp_replace({text}, '\\A[\\x00-\\x20]+|[\\x00-\\x20]+\\z', '')"),
    ),
    _string(
        "UUID",
        "A random UUID, or the one that 16 bytes hold.",
        overload("", "STRING", "uuid()"),
        overload(
            "bytes BYTES",
            "STRING",
            "if(length({bytes}) = 16, regexp_replace(lower(hex({bytes})),"
            " '^(.{8})(.{4})(.{4})(.{4})', '$1-$2-$3-$4-'), null)",
        ),
    ),
    _from_bytes("BIGINT_FROM_BYTES", 8, "BIGINT", "cast(conv(hex({bytes}), 16, -10) as bigint)"),
    _from_bytes("INT_FROM_BYTES", 4, "INT", "cast(cast(conv(hex({bytes}), 16, 10) as bigint) as int)"),
    _from_bytes("DOUBLE_FROM_BYTES", 8, "DOUBLE", "caudal_double_from_bytes({bytes})"),
    Function(
        "COALESCE",
        "CONDITIONAL",
        "The first of the values that is not NULL.",
        (overload("values T...", "T", "coalesce({values})"),),
    ),
    Function(
        "IFNULL",
        "CONDITIONAL",
        "Another value if the first is NULL.",
        (overload("a T, b T", "T", "coalesce({a}, {b})"),),
    ),
    Function(
        "NULLIF", "CONDITIONAL", "NULL if both values are equal.", (overload("a T, b T", "T", "nullif({a}, {b})"),)
    ),
)
