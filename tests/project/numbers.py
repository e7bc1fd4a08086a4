"""Numbers that tell how the source is cut, for each package: `python -m tests.project.numbers`."""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache

from tests.project.setting_families import FAMILIES, unexplained
from tests.project.source import PACKAGES, ROOT, modules, text, tree

_TOLD = re.compile(r"\btold\b")


def main() -> None:
    """Print the table."""
    heads = ("package", "lines", "modules", "private functions", "used once", "modules imported once", "told", "unread")
    rows = [(package, *_numbers(package)) for package in PACKAGES]
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    lines = [heads, ("---",) * len(heads), *rows]
    sys.stdout.write("".join(f"| {' | '.join(map(str, line))} |\n" for line in lines))


def _numbers(package: str) -> tuple[int, ...]:
    """Lines, modules, private functions, those with one call site, modules with one importer, "told", settings unread.

    "told" is counted in the documents of the package, too; a private function is looked for in its own module.
    """
    paths = list(modules(package))
    uses = [count for path in paths for count in _private_uses(path)]
    documents = (path.read_text(encoding="utf-8") for path in (ROOT / package).rglob("*.md"))
    own = [settings for settings in FAMILIES if settings.__module__.split(".")[0] == package]
    return (
        sum(text(path).count("\n") for path in paths),
        len(paths),
        len(uses),
        uses.count(1),
        sum(len(_importers()[path]) == 1 for path in paths),
        sum(len(_TOLD.findall(found)) for found in (*map(text, paths), *documents)),
        sum(len(unexplained(settings)) for settings in own),
    )


def _private_uses(path: str) -> Iterator[int]:
    """How often each private function of a module is named in it."""
    names: Counter[str] = Counter()
    private: list[str] = []
    for node in ast.walk(tree(path)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("_") and not name.endswith("__"):
                    private.append(name)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                names[name] += 1
            case _:
                pass
    return (names[name] for name in private)


@cache
def _importers() -> dict[str, set[str]]:
    """The modules that import each module."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in modules(*PACKAGES):
        for name in _imported(path):
            found[f"{name.replace('.', '/')}.py"].add(path)
    return found


def _imported(path: str) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case _:
                pass


if __name__ == "__main__":
    main()
