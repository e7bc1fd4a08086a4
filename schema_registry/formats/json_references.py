"""Resolve `$ref` and similar keywords inside the document, its registered references and the metaschemas, and never
over the network.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urldefrag, urljoin

import jsonschema_specifications  # type: ignore[import-untyped]  # it ships no types
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable

from schema_registry.formats.json_drafts import Draft, draft_of
from schema_registry.formats.json_keywords import Key, is_schema, keyword_faults, subschemas
from schema_registry.formats.json_patterns import SchemaPatterns
from schema_registry.formats.json_text import JsonObject, JsonValue
from schema_registry.formats.schema import InvalidSchema

if TYPE_CHECKING:
    from referencing._core import Resolver  # the library names this type nowhere else

Node = bool | JsonObject
Targets = Mapping[tuple[int, str], Node]
"""The target of each reference, by the identity of the schema object and the keyword."""

REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
SAME_PLACE_KEYWORDS = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
"""Keywords whose subschemas apply to the same value as their parent."""

_MAX_KEY_CHARS = 200

Path = tuple["Path", tuple[Key, ...]] | None


class _Reference(NamedTuple):
    node: JsonObject
    keyword: str
    path: Path
    resolver: "Resolver[Node]"
    draft: Draft


class SchemaGraph:
    """A document and all its references, checked: all schemas are well-formed, and all references resolve to schemas.

    `named` has the referenced documents by the names that the schema uses for them.
    """

    def __init__(self, document: Node, draft: Draft, named: Mapping[str, Node]) -> None:
        self._document = document
        self._draft = draft
        self._named = named
        self._aliases: dict[str, Resource[Node]] = {}
        self._seen: set[int] = set()
        self._pending: list[_Reference] = []
        self._patterns = SchemaPatterns()
        self.targets: dict[tuple[int, str], Node] = {}
        self._check()

    @cached_property
    def registry(self) -> "Registry[Node]":
        """The documents for the library `jsonschema`; nothing else is ever retrieved."""
        uri = self._document.get(self._draft.id_keyword, "") if isinstance(self._document, dict) else ""
        base = str(uri)
        resources = {"": self._draft.dialect.create_resource(self._document)}
        for name, document in self._named.items():
            resource = draft_of(document, self._draft).dialect.create_resource(document)
            resources |= {urljoin(base, name): resource, name: resource}
        registry: Registry[Node] = jsonschema_specifications.REGISTRY
        return registry.with_resources((resources | self._aliases).items()).crawl()

    def _check(self) -> None:
        # First without any references, which is all that most schemas need.
        empty: Registry[Node] = Registry()
        self._walk(self._document, None, empty.resolver(), self._draft)
        if not self._pending:
            return
        for name, document in self._named.items():
            self._check_named(name, document, empty.resolver())
        # The documents are well-formed, so that the real registry can be built, and the walk repeated with it.
        self._pending.clear()
        self._seen.clear()
        try:
            self._walk(self._document, None, self.registry.resolver(), self._draft)
        except ValueError as error:
            raise InvalidSchema(f"an id or the name of a reference is not a valid URI: {error}") from None
        while self._pending:
            self._follow(self._pending.pop())
        self._refuse_loops()

    def _check_named(self, name: str, document: Node, resolver: "Resolver[Node]") -> None:
        draft = draft_of(document, self._draft)
        if not is_schema(document, draft):
            raise InvalidSchema(f"the reference {name!r} is not a schema")
        try:
            self._walk(document, None, resolver, draft)
        except InvalidSchema as error:
            raise InvalidSchema(f"the reference {name!r}: {error}") from None

    def _walk(self, document: Node, path: Path, resolver: "Resolver[Node]", draft: Draft) -> None:
        """Check all schemas inside a schema, and collect their references."""
        stack: list[tuple[JsonValue, Path, Resolver[Node]]] = [(document, path, resolver)]
        while stack:
            node, path, resolver = stack.pop()
            if not isinstance(node, dict) or id(node) in self._seen:
                continue
            self._seen.add(id(node))
            for keys, fault in keyword_faults(node, draft, self._patterns):
                raise InvalidSchema(f"{_pointer((path, keys))}: {fault}")
            if draft.id_keyword in node:
                resolver = self._enter(node, path, resolver, draft)
            for keyword in REFERENCE_KEYWORDS:
                if isinstance(node.get(keyword), str):
                    self._pending.append(_Reference(node, keyword, path, resolver, draft))
            stack.extend((child, (path, keys), resolver) for keys, child in subschemas(node, draft))

    @staticmethod
    def _enter(node: JsonObject, path: Path, resolver: "Resolver[Node]", draft: Draft) -> "Resolver[Node]":
        try:
            return resolver.in_subresource(draft.dialect.create_resource(node))
        except ValueError as error:
            raise InvalidSchema(f"{_pointer((path, (draft.id_keyword,)))}: not a valid URI: {error}") from None

    def _follow(self, reference: _Reference) -> None:
        node, keyword, path, resolver, draft = reference
        where = _pointer((path, (keyword,)))
        try:
            target, inner = self._look_up(node[keyword], resolver)
        except (Unresolvable, LookupError, TypeError, ValueError, AttributeError):
            raise InvalidSchema(f"{where}: {_shorten(node[keyword])} cannot be resolved") from None
        if not is_schema(target, draft):
            raise InvalidSchema(f"{where}: {_shorten(node[keyword])} does not resolve to a schema")
        self.targets[id(node), keyword] = target
        self._walk(target, (path, (keyword,)), inner, draft_of(target, draft))

    def _look_up(self, uri: str, resolver: "Resolver[Node]") -> tuple[Node, "Resolver[Node]"]:
        try:
            found = resolver.lookup(uri)
        except Unresolvable:
            # A reference inside a reference: its document has its own base, but the names are those of the registry.
            name, fragment = urldefrag(uri)
            name = name if name in self._named else name.removeprefix("./")
            if name not in self._named:
                raise
            found = self.registry.resolver().lookup(f"{name}#{fragment}")
            self._remember_alias(uri, name, resolver)
        return found.contents, found.resolver

    def _remember_alias(self, uri: str, name: str, resolver: "Resolver[Node]") -> None:
        """Let `jsonschema` find the document at the address that this reference resolves to."""
        address, _ = urldefrag(urljoin(resolver._base_uri, uri))  # noqa: SLF001 - there is no public way to get it
        document = self._named[name]
        self._aliases[address] = draft_of(document, self._draft).dialect.create_resource(document)
        self.__dict__.pop("registry", None)

    def _refuse_loops(self) -> None:
        """Refuse references that lead back to themselves at the same place in the value: they mean nothing."""
        open_nodes: set[int] = set()
        closed: set[int] = set()
        for start in list(self.targets.values()):
            stack: list[tuple[Node, bool]] = [(start, False)]
            while stack:
                node, leaving = stack.pop()
                if leaving:
                    open_nodes.discard(id(node))
                    closed.add(id(node))
                elif id(node) in open_nodes:
                    raise InvalidSchema("references form a loop that never descends into the value")
                elif isinstance(node, dict) and id(node) not in closed:
                    open_nodes.add(id(node))
                    stack.append((node, True))
                    stack.extend((child, False) for child in self._same_place(node))

    def _same_place(self, node: JsonObject) -> Iterator[Node]:
        for keyword in REFERENCE_KEYWORDS:
            if (id(node), keyword) in self.targets:
                yield self.targets[id(node), keyword]
        if "$ref" in node and not self._draft.is_modern:
            return
        for keys, child in subschemas(node, self._draft):
            if keys[0] in SAME_PLACE_KEYWORDS and isinstance(child, dict):
                yield child


def _pointer(path: Path) -> str:
    """A JSON pointer for messages; very long keys are cut."""
    keys: list[str] = []
    while path is not None:
        path, last = path
        keys.extend(_shorten(str(key)) for key in reversed(last))
    return "/".join(["#", *reversed(keys)])


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_KEY_CHARS else f"{text[:_MAX_KEY_CHARS]}…"
