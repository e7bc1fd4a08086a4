"""`/subjects`: the names that schemas are registered under, and their versions."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from core_broker.service.web.limits import BoundedRoute
from core_broker.service.web.paths import Segment
from schema_registry.formats.protobuf import is_serialized
from schema_registry.formats.schema import SchemaType
from schema_registry.models import SchemaAnswer, SchemaBody, TagBody
from schema_registry.registry.registry import Registry
from schema_registry.routes.answers import listed, number, schema_text, told
from schema_registry.routes.parameters import Limit, Offset, Words

_NONE: list[str] = []


def router(registry: Registry) -> APIRouter:
    """The routes, answering from a registry."""
    routes = APIRouter(prefix="/subjects", tags=["subjects"], route_class=BoundedRoute)
    _add_subjects(routes, registry)
    _add_registration(routes, registry)
    _add_versions(routes, registry)
    _add_version_details(routes, registry)
    return routes


def _add_subjects(routes: APIRouter, registry: Registry) -> None:
    @routes.get("", response_model=list[str])
    def subjects(
        *,
        subjectPrefix: str = ":*:",
        deleted: bool = False,
        deletedOnly: bool = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """The names of all subjects."""
        found = registry.subjects(
            prefix=subjectPrefix, deleted=deleted, deleted_only=deletedOnly, offset=offset, limit=limit
        )
        return listed(found)

    @routes.delete("/{subject}", response_model=list[int])
    def delete(subject: Segment, *, permanent: bool = False) -> Response:
        """Delete all versions of a subject; for good only when that was done before."""
        return listed(registry.delete_subject(subject, permanent=permanent))

    @routes.get("/{subject}/metadata", response_model=SchemaAnswer)
    def latest_with_metadata(
        subject: Segment,
        *,
        key: Annotated[list[str], Query()] = [],
        value: Annotated[list[str], Query()] = [],
        format: str = "",
        deleted: bool = False,
    ) -> Response:
        """The newest version whose metadata has all of these properties."""
        properties = dict(zip(key, value, strict=False))
        return told(registry.latest_with_metadata(subject, properties, style=format, deleted=deleted))


def _add_registration(routes: APIRouter, registry: Registry) -> None:
    @routes.post("/{subject}", response_model=SchemaAnswer)
    def look_up(
        subject: Segment,
        body: SchemaBody,
        *,
        normalize: bool = False,
        format: str = "",
        deleted: bool = False,
    ) -> Response:
        """Which id and version a schema has under a subject."""
        return told(registry.look_up(subject, body, normalize=normalize, style=format, deleted=deleted))

    @routes.post("/{subject}/versions", response_model=SchemaAnswer)
    def register(
        subject: Segment,
        body: SchemaBody,
        *,
        normalize: bool = False,
        format: str = "",
        force: bool = False,
    ) -> Response:
        """Register a schema under a subject; registering it again changes nothing."""
        answer = registry.register(subject, body, normalize=normalize, style=format, force=force)
        return told(answer if format else _for_who_sent(body, answer))


def _for_who_sent(body: SchemaBody, answer: SchemaAnswer) -> SchemaAnswer:
    """Without the text for who sent a descriptor: Confluent's Python client would take the one for the other."""
    is_descriptor = answer.schema_type == SchemaType.PROTOBUF and is_serialized(body.schema_ or "")
    return answer.model_copy(update={"schema_": None}) if is_descriptor else answer


def _add_versions(routes: APIRouter, registry: Registry) -> None:
    @routes.get("/{subject}/versions", response_model=list[int])
    def versions(
        subject: Segment,
        *,
        deleted: bool = False,
        deletedOnly: bool = False,
        deletedAsNegative: bool = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """The numbers of a subject's versions."""
        found = registry.versions(
            subject,
            deleted=deleted,
            deleted_only=deletedOnly,
            deleted_as_negative=deletedAsNegative,
            offset=offset,
            limit=limit,
        )
        return listed(found)

    @routes.get("/{subject}/versions/{version}", response_model=SchemaAnswer)
    def one_version(
        subject: Segment,
        version: Segment,
        *,
        format: str = "",
        referenceFormat: str = "",
        deleted: bool = False,
        findTags: Words = _NONE,
    ) -> Response:
        """One version of a subject, by number or `latest`."""
        found = registry.version(
            subject,
            version,
            style=format,
            reference_style=referenceFormat,
            deleted=deleted,
            find_tags=findTags,
        )
        return told(found)

    @routes.delete("/{subject}/versions/{version}", response_model=int)
    def delete_version(subject: Segment, version: Segment, *, permanent: bool = False) -> Response:
        """Delete one version; for good only when it was deleted before."""
        return number(registry.delete_version(subject, version, permanent=permanent))


def _add_version_details(routes: APIRouter, registry: Registry) -> None:
    @routes.get("/{subject}/versions/{version}/schema", response_model=str)
    def text(
        subject: Segment,
        version: Segment,
        *,
        format: str = "",
        deleted: bool = False,
    ) -> Response:
        """The text of a version, and nothing else."""
        return schema_text(registry.version(subject, version, style=format, deleted=deleted).schema_)

    @routes.get("/{subject}/versions/{version}/referencedby", response_model=list[int])
    def referenced_by(
        subject: Segment, version: Segment, *, deleted: bool = False, offset: Offset = 0, limit: Limit = -1
    ) -> Response:
        """The ids of schemas that refer to a version."""
        return listed(registry.referenced_by(subject, version, deleted=deleted, offset=offset, limit=limit))

    @routes.post("/{subject}/versions/{version}/tags", response_model=SchemaAnswer)
    def tag(subject: Segment, version: Segment, body: TagBody) -> Response:
        """Add tags to a version's fields or take them away; this makes a new version."""
        return told(registry.tag(subject, version, body))
