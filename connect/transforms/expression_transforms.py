"""Filter, route and change records with expressions."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import STRING, Config, Importance, Problem, not_empty, one_of, option, optional
from connect.api.data import OPTIONAL_STRING, Field, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.record import Record
from connect.api.transform import R, Transform
from connect.transforms.expressions import Expression
from connect.transforms.inference import schema_of
from connect.transforms.java.numbers import wrap
from connect.transforms.java.regex import compile_pattern
from connect.transforms.options import problems_of
from connect.transforms.sides import Memo, Side
from connect.transforms.structs import require_map, require_struct, require_struct_schema, with_fields

_PURPOSE: Final = "setting fields"
_FIELD: Final = "field."
_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_PLAIN: Final = {Type.BOOLEAN: bool, Type.STRING: str, Type.BYTES: bytes}
_NULL_MODES: Final = one_of("keep", "drop", "evaluate")


class ExpressionFilterConfig(Config):
    """Options of ExpressionFilter."""

    condition: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """Keep the records for which this is true: value.amount > 100 and topic == 'orders'."""
    topic_regex: str | None = option(optional(STRING), default=None)
    """Records of topics that this pattern (Java's) does not match pass unchanged; not set: every topic matches."""
    null_handling_mode: str = option(STRING, default="evaluate", check=_NULL_MODES)
    """What to do with records whose value is null: keep or drop them, or evaluate the expression."""

    @override
    def problems(self) -> Iterable[Problem]:
        """An invalid expression or pattern."""
        return _expression_problems({"condition": self.condition}, topic_regex=self.topic_regex)


class ExpressionFilter(Transform):
    """Keeps the records for which an expression is true."""

    config_class: ClassVar[type[ExpressionFilterConfig]] = ExpressionFilterConfig
    config: ExpressionFilterConfig
    aliases = ("caudal.Filter",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._condition = Expression(self.config.condition, key="condition")
        self._scope = _Scope(self.config.topic_regex, self.config.null_handling_mode)

    @override
    def apply(self, record: R) -> R | None:
        decision = self._scope.decide(record)
        is_kept = self._condition.holds(record) if decision is None else decision
        return record if is_kept else None


class ScriptFilterConfig(ExpressionFilterConfig):
    """Options of Debezium's Filter."""

    language: str = option(STRING, default="")
    """Ignored: the condition is always an expression of our own language."""
    null_handling_mode: str = option(STRING, default="keep", check=_NULL_MODES)
    """What to do with records whose value is null: keep or drop them, or evaluate the expression."""


class ScriptFilter(ExpressionFilter):
    """Debezium's Filter, with our own expression language; simple conditions in Groovy mean the same."""

    config_class = ScriptFilterConfig
    aliases = ("io.debezium.transforms.Filter",)


class ContentBasedRouterConfig(Config):
    """Options of ContentBasedRouter."""

    topic_expression: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The new topic; null leaves the record in its topic: 'big' if value.amount > 100 else null."""
    language: str = option(STRING, default="")
    """Ignored: the expression is always one of our own language."""
    topic_regex: str | None = option(optional(STRING), default=None)
    """Records of topics that this pattern (Java's) does not match pass unchanged; not set: every topic matches."""
    null_handling_mode: str = option(STRING, default="keep", check=_NULL_MODES)
    """What to do with records whose value is null: keep or drop them, or evaluate the expression."""

    @override
    def problems(self) -> Iterable[Problem]:
        """An invalid expression or pattern."""
        return _expression_problems({"topic.expression": self.topic_expression}, topic_regex=self.topic_regex)


class ContentBasedRouter(Transform):
    """Sets the topic of records with an expression."""

    config_class = ContentBasedRouterConfig
    config: ContentBasedRouterConfig
    aliases = ("io.debezium.transforms.ContentBasedRouter",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._topic = Expression(self.config.topic_expression, key="topic.expression")
        self._scope = _Scope(self.config.topic_regex, self.config.null_handling_mode)

    @override
    def apply(self, record: R) -> R | None:
        decision = self._scope.decide(record)
        if decision is not None:
            return record if decision else None
        topic = self._topic.evaluate(record)
        return record if topic is None else replace(record, topic=_topic_name(topic))


class ExpressionMapConfig(Config):
    """Options of ExpressionMap; `field.<name>` sets a field of the value."""

    key: str | None = option(optional(STRING), default=None)
    """The new key."""
    value: str | None = option(optional(STRING), default=None)
    """The new value: {'id': key, 'total': value.price * value.count}."""
    topic: str | None = option(optional(STRING), default=None)
    """The new topic: lower(topic)."""

    @property
    def expressions(self) -> dict[str, str]:
        """All expressions, by the key of their option."""
        given = {"key": self.key, "value": self.value, "topic": self.topic}
        fields = {f"{_FIELD}{name}": text for name, text in self.below(_FIELD).items()}
        return {**{name: text for name, text in given.items() if text is not None}, **fields}

    @override
    def problems(self) -> Iterable[Problem]:
        """There is at least one expression, and each is valid."""
        if not self.expressions:
            yield Problem("value", "At least one of key, value, topic and field.<name> must be set")
        yield from _expression_problems(self.expressions, topic_regex=None)


class ExpressionMap(Transform):
    """Sets key, value, topic and fields of the value with expressions; each is evaluated on the original record."""

    config_class = ExpressionMapConfig
    config: ExpressionMapConfig
    aliases = ("caudal.Map",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        parsed = {key: Expression(text, key=key) for key, text in self.config.expressions.items()}
        self._fields = tuple((k.removeprefix(_FIELD), e) for k, e in parsed.items() if k.startswith(_FIELD))
        self._key, self._value, self._topic = (parsed.get(name) for name in ("key", "value", "topic"))
        self._inferred: dict[str, Schema] = {}
        self._schemas = Memo(_with_changed_fields)

    @override
    def apply(self, record: R) -> R | None:
        changes: dict[str, Any] = {}
        if self._topic is not None:
            changes["topic"] = _topic_name(self._topic.evaluate(record))
        if self._key is not None:
            changes["key_schema"], changes["key"] = _infer_schema(record, self._key.evaluate(record))
        schema, value = record.value_schema, record.value
        if self._value is not None:
            schema, value = _infer_schema(record, self._value.evaluate(record))
        if self._fields and value is not None:
            new = {name: expression.evaluate(record) for name, expression in self._fields}
            schema, value = self._with_fields(schema, value, new=new)
        return replace(record, value_schema=schema, value=value, **changes)

    def _with_fields(self, schema: Schema | None, value: Value, *, new: dict[str, Value]) -> Side:
        if schema is None:
            return None, {**require_map(value, _PURPOSE), **new}
        require_struct_schema(schema, _PURPOSE)
        typed = {name: self._fit(schema.field(name), name, value=item) for name, item in new.items()}
        updated = self._schemas[schema, tuple((name, field_schema) for name, (field_schema, _) in typed.items())]
        return updated, {**require_struct(value, _PURPOSE), **{name: item for name, (_, item) in typed.items()}}

    def _fit(self, schema: Schema | None, name: str, *, value: Value) -> tuple[Schema, Value]:
        """The schema of the field if the value fits it, else an inferred one, which later nulls get as well."""
        if schema is None:
            schema = self._inferred.get(name)
        if value is None:
            return OPTIONAL_STRING if schema is None else schema.as_optional(), None
        if schema is not None and _fits(schema, value):
            return schema, float(value) if schema.type in {Type.FLOAT32, Type.FLOAT64} else value
        inferred = self._inferred[name] = schema_of(value)
        return inferred, value


def _with_changed_fields(key: tuple[Schema, tuple[tuple[str, Schema], ...]]) -> Schema:
    """A STRUCT with the schemas of some fields replaced, or added."""
    schema, changes = key
    changed = dict(changes)
    fields = [Field(item.name, changed.get(item.name, item.schema)) for item in schema.fields]
    return with_fields(schema, [*fields, *(Field(name, new) for name, new in changes if name not in schema.by_name)])


class _Scope:
    """Which records an expression is evaluated for."""

    def __init__(self, topic_regex: str | None, null_mode: str) -> None:
        self._topics = None if topic_regex is None else compile_pattern(topic_regex, "topic.regex")
        self._null_mode = null_mode

    def decide(self, record: Record) -> bool | None:
        """True: the record passes. False: it is dropped. None: the expression decides."""
        if self._topics is not None and self._topics.fullmatch(record.topic) is None:
            return True
        if record.value is None and self._null_mode != "evaluate":
            return self._null_mode == "keep"
        return None


def _expression_problems(texts: Mapping[str, str], *, topic_regex: str | None) -> Iterable[Problem]:
    for key, text in texts.items():
        yield from problems_of(key, partial(Expression, text, key=key))
    if topic_regex is not None:
        yield from problems_of("topic.regex", partial(compile_pattern, topic_regex, "topic.regex"))


def _infer_schema(record: Record, value: Value) -> Side:
    """A result, with a schema if the record has any."""
    has_schema = record.value_schema is not None or record.key_schema is not None
    return (schema_of(value) if has_schema and value is not None else None), value


def _topic_name(value: Value) -> str:
    if not isinstance(value, str) or not value:
        raise DataError(f"a topic must be a non-empty text, but the result of the expression is {value!r}")
    return value


def _fits(schema: Schema, value: Value) -> bool:
    if schema.name is not None:
        return False
    if schema.type in _BITS:
        return type(value) is int and wrap(value, _BITS[schema.type]) == value
    if schema.type in {Type.FLOAT32, Type.FLOAT64}:
        return type(value) in {int, float}
    return schema.type in _PLAIN and isinstance(value, _PLAIN[schema.type])
