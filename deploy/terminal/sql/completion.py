"""What the prompt offers while a statement is typed: words of the language, and names that the service knows."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from typing_extensions import override

from deploy.views.sql.script import COMMANDS
from streams.sql.language.words import KEYWORDS, STATEMENTS

_WORD: Final = re.compile(r"[\w@`\"'$-]*$")
_WORDS: Final = re.compile(r"[A-Za-z_][\w@]*")
_BEFORE: Final = re.compile(r"([A-Za-z_]+)\s+[\w@`\"'-]*$")
_BEFORE_SOURCE: Final = frozenset({"FROM", "JOIN", "INTO", "DESCRIBE", "STREAM", "TABLE", "EXISTS"})
_BEFORE_QUERY: Final = frozenset({"TERMINATE", "PAUSE", "RESUME", "EXPLAIN"})
_OFFERED_MAX: Final = 200


@dataclass(slots=True)
class Names:
    """What the service knows, as far as it has been asked."""

    sources: Sequence[str] = ()
    topics: Sequence[str] = ()
    queries: Sequence[str] = ()
    functions: Sequence[str] = ()
    columns_of: Callable[[str], Sequence[str]] = field(default=lambda _: ())
    """The columns of a stream or table; may take a moment."""


class SqlCompleter(Completer):
    """Offers what may follow; runs in a thread, because it may ask the service."""

    def __init__(self, names: Callable[[], Names]) -> None:
        self._names = names

    @override
    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        found = _WORD.search(text)
        typed = found[0] if found else ""
        if not typed and not complete_event.completion_requested:
            return
        count = 0
        for kind, names in self._offers(text, typed):
            for name in names:
                if name.upper().startswith(typed.upper()) and name.upper() != typed.upper():
                    yield Completion(name, start_position=-len(typed), display_meta=kind)
                    count += 1
            if count > _OFFERED_MAX:
                return

    def _offers(self, text: str, typed: str) -> Iterator[tuple[str, Iterable[str]]]:
        names = self._names()
        statement = text.rpartition(";")[2]
        if not statement[: len(statement) - len(typed)].strip():
            yield "statement", STATEMENTS
            yield "command", COMMANDS
            return
        before = _BEFORE.search(statement)
        word = before[1].upper() if before else ""
        if word == "PRINT":
            yield "topic", names.topics
        elif word in _BEFORE_QUERY:
            yield "query", names.queries
        elif word in _BEFORE_SOURCE:
            yield "stream or table", names.sources
        else:
            mentioned = {found.upper() for found in _WORDS.findall(statement)}
            for source in names.sources:
                if source.upper() in mentioned:
                    yield f"column of {source}", names.columns_of(source)
            yield "function", names.functions
        yield "", sorted(KEYWORDS)
