"""Files of users' functions: they are run as modules, and what they have decorated is found in them."""

import importlib.util
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from streams.functions.annotations import read_type, sql_type
from streams.functions.api import DEFINITION, Definition
from streams.functions.signature import Argument, Loaded, Signature
from streams.model.types import Array, SqlType

_FILES_MAX: Final = 200
_FILE_BYTES_MAX: Final = 1 << 20
_MODULE: Final = "caudal_extension_"


def extension_files(folder: Path) -> list[Path]:
    """The files in a folder that may define functions: those whose names do not begin with an underscore."""
    found = sorted(path for path in folder.glob("*.py") if path.name[0] not in "_." and path.is_file())
    if len(found) > _FILES_MAX:
        raise ValueError(f"{folder} has {len(found)} files of functions; {_FILES_MAX} are allowed")
    return found


def functions_in(path: Path) -> tuple[Loaded, ...]:
    """The functions that a file defines. It raises what the file raises, and ValueError for a wrong definition."""
    status = path.stat()
    if status.st_size > _FILE_BYTES_MAX:
        raise ValueError(f"{path.name} has {status.st_size} bytes; {_FILE_BYTES_MAX} are allowed")
    return _functions_in(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=_FILES_MAX)
def _functions_in(path: Path, changed_ns: int, size: int) -> tuple[Loaded, ...]:  # noqa: ARG001  # a changed file is read again
    module = _run(path)
    return tuple(Loaded(_signature(target, definition, path.name), target) for target, definition in _decorated(module))


def _run(path: Path) -> types.ModuleType:
    name = _MODULE + path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path.name} is no module of Python")
    # Files may import others of their folder.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _decorated(module: types.ModuleType) -> Iterator[tuple[Any, Definition]]:
    """What the module has defined itself, not what it has imported."""
    for target in list(vars(module).values()):
        definition = getattr(target, DEFINITION, None) if isinstance(target, type | types.FunctionType) else None
        if isinstance(definition, Definition) and target.__module__ == module.__name__:
            yield target, definition


def _signature(target: Any, definition: Definition, file: str) -> Signature:
    name = (definition.name or target.__name__).upper()
    try:
        if not name.isidentifier() or not name.isascii():
            raise ValueError("the name of a function has letters, digits and underscores only")
        return _read_signature(target, definition, name, file)
    except ValueError as error:
        raise ValueError(f"{name} in {file}: {error}") from error


def _read_signature(target: Any, definition: Definition, name: str, file: str) -> Signature:
    is_aggregate = definition.kind == "aggregate"
    if is_aggregate:
        _check_methods(target)
    computing = target.add if is_aggregate else target
    arguments, is_variadic = _arguments(computing, definition, skipped=2 if is_aggregate else 0)
    if is_aggregate and (is_variadic or not arguments):
        raise ValueError("`add` takes the state, and a fixed number of values")
    result = _result(target.result if is_aggregate else target, definition)
    if definition.kind == "table":
        if not isinstance(result, Array):
            raise ValueError(f"a table function returns a list, not {result}")
        result = result.element
    return Signature(
        name=name,
        kind=definition.kind,
        arguments=arguments,
        result=str(result),
        is_variadic=is_variadic,
        has_undo=is_aggregate and hasattr(target, "undo"),
        has_merge=is_aggregate and hasattr(target, "merge"),
        description=definition.description or inspect.getdoc(target) or "",
        author=definition.author,
        version=definition.version,
        file=file,
    )


def _check_methods(target: Any) -> None:
    missing = [name for name in ("start", "add", "result") if not callable(getattr(target, name, None))]
    if not isinstance(target, type) or missing:
        raise ValueError(f"an aggregate is a class with methods start, add and result; missing: {', '.join(missing)}")


def _arguments(
    function: Callable[..., object], definition: Definition, *, skipped: int
) -> tuple[tuple[Argument, ...], bool]:
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    keywords = [one.name for one in parameters if one.kind in {one.KEYWORD_ONLY, one.VAR_KEYWORD}]
    if keywords:
        raise ValueError(f"arguments have no names in SQL: {', '.join(keywords)}")
    is_variadic = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL
    types_given = definition.arguments
    if types_given is not None and len(types_given) != len(parameters):
        raise ValueError(f"`arguments` has {len(types_given)} types, the function {len(parameters)} parameters")
    kinds = [
        _type_of(one.annotation, function, one.name) if types_given is None else read_type(types_given[number])
        for number, one in enumerate(parameters)
    ]
    named = zip(parameters, kinds, strict=True)
    return tuple(Argument(one.name, str(kind)) for one, kind in named), is_variadic


def _result(function: Callable[..., object], definition: Definition) -> SqlType:
    if definition.returns is not None:
        return read_type(definition.returns)
    return _type_of(inspect.signature(function).return_annotation, function, "the result")


def _type_of(annotation: object, function: Callable[..., object], what: str) -> SqlType:
    if annotation is inspect.Parameter.empty:
        raise ValueError(f"{what} has no type; annotate it")
    return sql_type(annotation, function)
