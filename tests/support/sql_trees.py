"""Random syntax trees of SQL over topics: any that can be written, whether or not they make sense."""

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from streams.sql.language.tree import expressions as ex
from streams.sql.language.tree import queries as qu
from streams.sql.language.tree import statements as sm
from streams.sql.language.tree import types as ty
from streams.sql.language.tree.node import Identifier
from streams.sql.language.words import KEYWORDS

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(["", "it's", "''", "${a}", "$${a}", "$$${b}", "a;b", "--", "/* x", "a`b", 'a"b', "\n\t", "日本語"]),
)
NAMES = st.one_of(
    st.sampled_from(["A", "B", "PRICE", "ORDER_ID", "_X", "lower", "two words", "2ND", "A@B", "CHANGE", "OVERWRITE"]),
    st.sampled_from(sorted(KEYWORDS)),
    TEXTS.filter(bool),
).map(Identifier)

_primitives = st.sampled_from(ty.Primitive).map(ty.PrimitiveType)
_small = st.integers(0, 40)
TYPES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(_primitives, st.builds(ty.DecimalType, _small, _small), st.builds(ty.CustomType, NAMES)),
    lambda inner: st.one_of(
        st.builds(ty.ArrayType, inner),
        st.builds(ty.MapType, inner, inner),
        st.builds(ty.StructType, st.lists(st.builds(ty.FieldType, NAMES, inner), max_size=3).map(tuple)),
    ),
    max_leaves=5,
)

_strings = TEXTS.map(ex.StringLiteral)
LITERALS = st.one_of(
    _strings,
    st.integers(-(2**63), 2**63 - 1).map(ex.IntegerLiteral),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=Decimal(-(10**20)), max_value=Decimal(10**20)).map(
        ex.DecimalLiteral
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(ex.DoubleLiteral),
    st.booleans().map(ex.BooleanLiteral),
    st.just(ex.NullLiteral()),
)


def _tuples(inner: st.SearchStrategy[Any], smallest: int = 0, largest: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(inner, min_size=smallest, max_size=largest).map(tuple)


def _chains(operators: str, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    rest = st.builds(ex.Operand, st.sampled_from(operators), inner)
    return st.builds(ex.Arithmetic, inner, _tuples(rest, 1))


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    steps = st.one_of(st.builds(ex.FieldAccess, NAMES), st.builds(ex.ElementAccess, inner))
    lambdas = st.builds(ex.Lambda, _tuples(NAMES, 1), inner)
    units = st.sampled_from(qu.Unit).map(lambda unit: ex.UnitArgument(unit.value))
    arguments = st.one_of(_tuples(st.one_of(inner, lambdas, units)), st.just((ex.AllRows(),)))
    maybe = st.one_of(st.none(), inner)
    return st.one_of(
        st.builds(ex.Access, inner, _tuples(steps, 1)),
        st.builds(ex.Sign, st.sampled_from("+-"), inner),
        _chains("+-", inner),
        _chains("*/%", inner),
        st.builds(ex.Concatenation, _tuples(inner, 2)),
        st.builds(ex.Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), inner, inner),
        st.builds(ex.Between, inner, inner, inner, st.booleans()),
        st.builds(ex.InList, inner, _tuples(inner, 1), st.booleans()),
        st.builds(ex.Like, inner, inner, st.one_of(st.none(), _strings), st.booleans()),
        st.builds(ex.IsNull, inner, st.booleans()),
        st.builds(ex.IsDistinct, inner, inner, st.booleans()),
        st.builds(ex.Not, inner),
        st.builds(ex.Logical, st.sampled_from(["AND", "OR"]), _tuples(inner, 2)),
        st.builds(ex.Case, maybe, _tuples(st.builds(ex.When, inner, inner), 1), maybe),
        st.builds(ex.Cast, inner, TYPES),
        st.builds(ex.FunctionCall, NAMES, arguments),
        st.builds(ex.ArrayConstructor, _tuples(inner)),
        st.builds(ex.MapConstructor, _tuples(st.builds(ex.MapEntry, inner, inner))),
        st.builds(ex.StructConstructor, _tuples(st.builds(ex.StructEntry, NAMES, inner))),
    )


EXPRESSIONS: st.SearchStrategy[Any] = st.recursive(
    st.one_of(LITERALS, st.builds(ex.ColumnReference, NAMES, st.one_of(st.none(), NAMES))), _larger, max_leaves=8
)
_few_expressions = _tuples(EXPRESSIONS, 1, 2)

_durations = st.builds(qu.Duration, st.integers(-5, 10**12), st.sampled_from(qu.Unit))
_maybe_duration = st.one_of(st.none(), _durations)
_sources = st.builds(qu.QuerySource, NAMES, st.one_of(st.none(), NAMES))
_within = st.builds(qu.Within, _durations, _durations, _maybe_duration)
_joins = st.builds(qu.Join, st.sampled_from(qu.JoinKind), _sources, EXPRESSIONS, st.one_of(st.none(), _within))
_windows = st.one_of(
    st.builds(qu.TumblingWindow, _durations, _maybe_duration, _maybe_duration),
    st.builds(qu.HoppingWindow, _durations, _durations, _maybe_duration, _maybe_duration),
    st.builds(qu.SessionWindow, _durations, _maybe_duration, _maybe_duration),
)
_items = st.one_of(
    st.builds(qu.SelectExpression, EXPRESSIONS, st.one_of(st.none(), NAMES)),
    st.builds(qu.SelectAll, st.one_of(st.none(), NAMES)),
    st.builds(qu.SelectFields, EXPRESSIONS),
)
QUERIES: st.SearchStrategy[qu.Query] = st.builds(
    qu.Query,
    _tuples(_items, 1),
    _sources,
    _tuples(_joins, 0, 2),
    st.one_of(st.none(), _windows),
    st.one_of(st.none(), EXPRESSIONS),
    st.one_of(st.just(()), _few_expressions),
    st.one_of(st.just(()), _few_expressions),
    st.one_of(st.none(), EXPRESSIONS),
    st.one_of(st.none(), st.sampled_from(qu.Emit)),
    st.one_of(st.none(), st.integers(-5, 10**9).map(ex.IntegerLiteral)),
)


@st.composite
def _columns(draw: st.DrawFn) -> sm.Column:
    role = draw(st.sampled_from(sm.ColumnRole))
    header = draw(TEXTS) if role is sm.ColumnRole.HEADER else None
    return sm.Column(draw(NAMES), draw(TYPES), role, header)


_bools = st.booleans()
_texts_with_content = TEXTS.filter(bool)
_properties = st.builds(sm.Property, _texts_with_content.map(str.upper), LITERALS)
_connector_properties = st.builds(sm.Property, TEXTS, LITERALS)
_kinds = st.sampled_from(sm.SourceKind)
_value_columns = st.builds(sm.Column, NAMES, TYPES)
_create_as_select = st.builds(sm.CreateAsSelect, _kinds, NAMES, QUERIES, _tuples(_properties), _bools, _bools)
_variables = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)


@st.composite
def _drops(draw: st.DrawFn) -> sm.Drop:
    kind = draw(st.sampled_from(sm.DroppedKind))
    has_topic = kind in {sm.DroppedKind.STREAM, sm.DroppedKind.TABLE}
    return sm.Drop(kind, draw(NAMES), draw(_bools), has_topic and draw(_bools))


@st.composite
def _shows(draw: st.DrawFn) -> sm.Show:
    what = draw(st.sampled_from(sm.Shown))
    extendable = {sm.Shown.TOPICS, sm.Shown.ALL_TOPICS, sm.Shown.STREAMS, sm.Shown.TABLES, sm.Shown.QUERIES}
    return sm.Show(what, what in extendable and draw(_bools))


@st.composite
def _describes(draw: st.DrawFn) -> sm.Describe:
    what = draw(st.sampled_from(sm.Described))
    has_name = what not in {sm.Described.STREAMS, sm.Described.TABLES}
    is_extended = what not in {sm.Described.FUNCTION, sm.Described.CONNECTOR} and draw(_bools)
    return sm.Describe(what, draw(NAMES) if has_name else None, is_extended)


_ids = st.one_of(st.none(), st.integers(-5, 10**6))
_assert_schema = st.builds(sm.AssertSchema, st.one_of(st.none(), TEXTS), _ids, _maybe_duration, _bools).filter(
    lambda node: node.subject is not None or node.schema_id is not None
)

STATEMENTS: st.SearchStrategy[Any] = st.one_of(
    QUERIES,
    st.builds(sm.CreateSource, _kinds, NAMES, _tuples(_columns()), _tuples(_properties), _bools, _bools, _bools),
    _create_as_select,
    st.builds(sm.CreateConnector, st.sampled_from(sm.ConnectorKind), NAMES, _tuples(_connector_properties, 1), _bools),
    st.builds(sm.CreateType, NAMES, TYPES, _bools),
    st.builds(sm.InsertSelect, NAMES, QUERIES, _tuples(_properties)),
    st.builds(sm.InsertValues, NAMES, _tuples(NAMES), _tuples(EXPRESSIONS)),
    _drops(),
    st.builds(sm.AlterSource, _kinds, NAMES, _tuples(_value_columns, 1)),
    st.builds(sm.AlterSystem, TEXTS, TEXTS),
    st.builds(sm.ControlQuery, st.sampled_from(sm.QueryAction), st.one_of(st.none(), NAMES)),
    st.builds(sm.SetProperty, TEXTS, TEXTS),
    st.builds(sm.UnsetProperty, TEXTS),
    st.builds(sm.DefineVariable, _variables, TEXTS),
    st.builds(sm.UndefineVariable, _variables),
    _shows(),
    _describes(),
    st.builds(sm.Explain, st.one_of(NAMES, QUERIES, _create_as_select)),
    st.builds(sm.PrintTopic, TEXTS, _bools, _ids, _ids),
    st.builds(sm.AssertTopic, TEXTS, _tuples(_properties), _maybe_duration, _bools),
    _assert_schema,
    st.builds(sm.AssertValues, NAMES, _tuples(NAMES), _tuples(EXPRESSIONS)),
    st.builds(sm.AssertTombstone, NAMES, _tuples(NAMES), _tuples(EXPRESSIONS)),
    st.builds(sm.AssertSource, _kinds, NAMES, _tuples(_columns()), _tuples(_properties)),
    st.builds(sm.RunScript, TEXTS),
)
