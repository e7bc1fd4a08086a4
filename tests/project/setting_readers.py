"""Who reads a setting: every `settings.some_field` in the source, found in the syntax trees.

A field counts as read where it is taken from something that is called settings, in a package that is given settings of
that class, and, where an annotation tells the class, only if it is that one. A read in a settings module itself, say in
a property, counts if the function around it is used elsewhere; rules that only compare settings with each other
(`problems`) use nothing.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from tests.project.source import PACKAGES, modules, text, tree

_RULES: Final = "problems"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One place where an attribute is read."""

    path: str
    line: int
    name: str
    receiver: str
    """What the attribute is taken from, as it is written."""
    origin: str
    """The same; where that is a local variable, what was assigned to it."""
    annotation: str | None
    """The annotation of the receiver where it is a parameter, or an attribute that was assigned from one."""
    owner: str
    """The class around it, empty for none."""
    function: str
    """The function around it, empty for none."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.receiver}.{self.name}"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where in a module the walk is."""

    owner: str = ""
    function: str = ""
    annotations: Mapping[str, ast.expr] = field(default_factory=dict)
    """Of parameters, by name, and of the attributes of the class, as `self.name`."""
    assigned: Mapping[str, ast.expr] = field(default_factory=dict)
    """What local variables stand for."""


@cache
def _reads(path: str) -> tuple[Read, ...]:
    """Every attribute that is read in a module."""
    return tuple(_walk(tree(path), path, Scope()))


def _walk(node: ast.AST, path: str, scope: Scope) -> Iterator[Read]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _walk(child, path, Scope(owner=child.name, annotations=_attributes(child)))
            continue
        if isinstance(child, _Function):
            yield from _walk(child, path, _inside(child, scope))
            continue
        if isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Load):
            receiver = _dotted(child.value)
            annotation = scope.annotations.get(receiver)
            yield Read(
                path=path,
                line=child.lineno,
                name=child.attr,
                receiver=receiver,
                origin=_dotted(scope.assigned.get(receiver, child.value)),
                annotation=None if annotation is None else ast.unparse(annotation),
                owner=scope.owner,
                function=scope.function,
            )
        yield from _walk(child, path, scope)


def _dotted(node: ast.expr) -> str:
    """Names with dots between them, as they are written; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value)}.{name}"
        case ast.Call(func=function):
            return f"{_dotted(function)}()"
        case _:
            return ""


def _inside(function: _Function, scope: Scope) -> Scope:
    assigned = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                assigned[name] = value
            case _:
                pass
    return Scope(
        owner=scope.owner,
        function=scope.function or function.name,  # a function within a function belongs to the outer one
        annotations={**scope.annotations, **_parameters(function)},
        assigned={**scope.assigned, **assigned},
    )


def _parameters(function: _Function) -> dict[str, ast.expr]:
    parameters = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return {each.arg: each.annotation for each in parameters if each.annotation is not None}


def _attributes(owner: ast.ClassDef) -> dict[str, ast.expr]:
    """Annotations of what `self` has: declared in the class, or assigned from a parameter of a method."""
    found: dict[str, ast.expr] = {}
    for method in (node for node in owner.body if isinstance(node, _Function)):
        parameters = _parameters(method)
        for node in ast.walk(method):
            match node:
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Name(id=source)
                ) if source in parameters:
                    found[f"self.{name}"] = parameters[source]
                case _:
                    pass
    for node in owner.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                found[f"self.{name}"] = annotation
            case _:
                pass
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A class of settings, and where its fields are defined and read."""

    names: frozenset[str]
    """The class and its bases: a reader may know it as one of them."""
    fields: tuple[str, ...]
    defined_in: tuple[str, ...]
    """Beginnings of the paths of the modules that define it."""
    read_in: tuple[str, ...]
    """Beginnings of the paths of the modules that are given such settings."""
    called: frozenset[str] = frozenset({"settings", "_settings"})
    """How variables and attributes that hold such settings are named."""

    def readers(self) -> dict[str, list[Read]]:
        """Those who read each field."""
        found: dict[str, list[Read]] = {name: [] for name in self.fields}
        used = _used_functions(self.defined_in)
        for path in modules(*PACKAGES):
            # Most modules know nothing of these settings, and reading a syntax tree takes its time.
            if path.startswith((*self.defined_in, *self.read_in)) and self._is_named_in(path):
                for read in _reads(path):
                    if read.name in found and self._counts(read, used):
                        found[read.name].append(read)
        return found

    def _is_named_in(self, path: str) -> bool:
        return any(name in text(path) for name in (*self.names, *self.called))

    def _counts(self, read: Read, used: frozenset[str]) -> bool:
        if read.path.startswith(self.defined_in):
            return read.function in used
        if not read.path.startswith(self.read_in):
            return False
        if read.annotation is not None:
            return any(name in read.annotation for name in self.names)
        return read.receiver.rpartition(".")[2].removesuffix("()") in self.called


@cache
def _used_functions(defined_in: tuple[str, ...]) -> frozenset[str]:
    """Functions of settings modules that are used from outside, directly or through each other."""
    calls: dict[str, set[str]] = {}
    outside: set[str] = set()
    for path in modules(*PACKAGES):
        if not path.startswith(defined_in):
            outside |= _used_names(path)
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, _Function) and node.name != _RULES:
                calls.setdefault(node.name, set()).update(_names(node))
    used = outside & calls.keys()
    while more := {name for function in used for name in calls[function] if name in calls} - used:
        used |= more
    return frozenset(used)


def _names(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name):
                yield name
            case _:
                pass


@cache
def _used_names(path: str) -> frozenset[str]:
    """What a module takes from objects and other modules."""
    return frozenset(re.findall(r"(?:\.|\bimport .*\b)(\w+)", text(path)))
