"""The catalog that statements are planned against: the definitions, and users' own functions."""

from collections.abc import Mapping

from streams.catalog.state import State
from streams.sql.functions.user import UserFunction


class Catalog(State):
    """The definitions together with the functions of `ksql.extension.dir`."""

    def __init__(self) -> None:
        super().__init__()
        self._functions: dict[str, UserFunction] = {}

    def know_functions(self, functions: Mapping[str, UserFunction]) -> None:
        """Users' functions, as they have been read when the server started."""
        self._functions = dict(functions)

    def user_function(self, name: str) -> UserFunction | None:
        """A user's function by its name in upper case."""
        return self._functions.get(name)

    def user_functions(self) -> Mapping[str, UserFunction]:
        """All of them, by name."""
        return self._functions
