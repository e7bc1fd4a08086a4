"""Users' functions as SQL calls them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from streams.functions.signature import PREFIX, Signature
from streams.model.types import TIME, Array, contains, parse_type, spark_type
from streams.sql.errors import WrongArguments
from streams.sql.expressions import Expression, Lambda
from streams.sql.functions.model import Call, Function, Kind, Match, Overload, result_type, written
from streams.sql.functions.signatures import Argument, Exact, Fit, Parameter, fit

_CATEGORY = "USER-DEFINED"


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of a user's files, with all its overloads."""

    function: Function
    """What the table of functions would hold for it."""
    signatures: tuple[Signature, ...]
    """In the order of the overloads."""

    @property
    def name(self) -> str:
        """In upper case."""
        return self.function.name

    @property
    def kind(self) -> Kind:
        """SCALAR, AGGREGATE or TABLE."""
        return self.function.kind

    @property
    def description(self) -> str:
        """What its author says about it."""
        return self.function.description

    @property
    def processor_name(self) -> str:
        """What an aggregate is called in `Aggregate.function`, and any function in the `functions` of a step."""
        return PREFIX + self.name

    def match(self, arguments: Sequence[Argument]) -> Match:
        """The overload that takes arguments of these types best."""
        fits: list[tuple[Overload, Fit]] = []
        for one in self.function.overloads:
            fitted = fit(one.parameters, arguments)
            fits += [] if fitted is None else [(one, fitted)]
        if not fits:
            given = ", ".join("LAMBDA" if isinstance(one, Lambda) else str(one) for one in arguments)
            raise WrongArguments(self.name, f"({given})", tuple(one.signature for one in self.function.overloads))
        chosen, fitted = min(fits, key=lambda pair: pair[1].cost)
        return Match(self.function, chosen, fitted, result_type(chosen, fitted))

    def call(self, arguments: Sequence[Expression | Lambda], *, order: str) -> Expression:
        """A call in Spark's SQL; of a table function, the array of its rows; an aggregate takes records in an order."""
        match = self.match([one if isinstance(one, Lambda) else one.type for one in arguments])
        expression = written(match, arguments, order)
        return replace(expression, functions=expression.functions | {self.processor_name})


def user_functions(signatures: Iterable[Signature]) -> dict[str, UserFunction]:
    """The functions of all files by their names; overloads of another kind than the first one are left out."""
    grouped: dict[str, list[Signature]] = {}
    for one in signatures:
        members = grouped.setdefault(one.name, [])
        if not members or members[0].kind == one.kind:
            members.append(one)
    return {name: _function(name, members) for name, members in grouped.items()}


def _function(name: str, signatures: Sequence[Signature]) -> UserFunction:
    kind = Kind(signatures[0].kind.upper())
    description = next((one.description for one in signatures if one.description), "")
    overloads = tuple(_overload(one) for one in signatures)
    return UserFunction(Function(name, _CATEGORY, description, overloads, kind), tuple(signatures))


def _overload(signature: Signature) -> Overload:
    last = len(signature.arguments) - 1
    parameters = tuple(
        Parameter(f"value_{number}", Exact(parse_type(one.type)), signature.is_variadic and number == last)
        for number, one in enumerate(signature.arguments)
    )
    name = signature.spark_name
    result = parse_type(signature.result)
    returned = Array(result) if signature.kind == "table" else result

    def write(call: Call) -> str:
        given = [*call.arguments.values(), *call.repeated]
        # Spark has no functions of columns without a column.
        taken = ", ".join(one.text for one in given) or "true"
        if signature.kind == "aggregate":
            fields = "".join(f", 'v{number}', {one.text}" for number, one in enumerate(given))
            taken = f"collect_list(named_struct('at', {call.order}{fields}))"
        # Times from Python have microseconds.
        text = f"{name}({taken})"
        return f"cast({text} as {spark_type(returned)})" if contains(returned, TIME) else text

    return Overload(parameters, Exact(result), write, undo=signature.has_undo, merge=signature.has_merge)
