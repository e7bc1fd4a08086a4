"""Errors in the types of an expression. The caller adds the place in the statement."""

from streams.errors import StreamsError


class TypeProblem(StreamsError):
    """An expression cannot be given a type: the message says why."""


class UnknownFunction(TypeProblem):
    """There is no function of this name; `similar` are names that it may have meant."""

    def __init__(self, name: str, similar: tuple[str, ...]) -> None:
        hint = f" Did you mean {' or '.join(similar)}?" if similar else ""
        super().__init__(f"Can't find any functions with the name '{name}'.{hint}")
        self.name = name
        self.similar = similar


class WrongArguments(TypeProblem):
    """No overload of a function takes such arguments."""

    def __init__(self, name: str, given: str, alternatives: tuple[str, ...]) -> None:
        super().__init__(f"{name} takes {' or '.join(alternatives)}, not {given}")
        self.name = name
        self.given = given
        self.alternatives = alternatives
