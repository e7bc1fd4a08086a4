"""`/subjects`: the names that schemas are registered under, and their versions."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from core_broker.service.web.paths import Segment
from schema_registry.formats.protobuf import is_serialized
from schema_registry.formats.schema import SchemaType
from schema_registry.models import SchemaBody, SchemaResponse, TagBody
from schema_registry.registry.registry import Registry
from schema_registry.routes.guard import AccessDependency, GuardedRoute
from schema_registry.routes.parameters import Limit, Offset, Words
from schema_registry.routes.responses import json_response, list_response, number_response, text_response

_NONE: list[str] = []


def router(registry: Registry) -> APIRouter:
    """The routes of `/subjects`."""
    routes = APIRouter(prefix="/subjects", tags=["subjects"], route_class=GuardedRoute)
    _add_subjects(routes, registry)
    _add_registration(routes, registry)
    _add_versions(routes, registry)
    _add_version_details(routes, registry)
    return routes


def _add_subjects(routes: APIRouter, registry: Registry) -> None:
    @routes.get("", response_model=list[str])
    def subjects(
        access: AccessDependency,
        *,
        subjectPrefix: str = ":*:",
        deleted: bool = False,
        deletedOnly: bool = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """The names of all subjects."""
        found = registry.seen_by(access).subjects(
            prefix=subjectPrefix, deleted=deleted, deleted_only=deletedOnly, offset=offset, limit=limit
        )
        return list_response(found)

    @routes.delete("/{subject}", response_model=list[int])
    def delete(subject: Segment, access: AccessDependency, *, permanent: bool = False) -> Response:
        """Delete all versions of a subject: softly first, then with `permanent`."""
        return list_response(registry.seen_by(access).delete_subject(subject, permanent=permanent))

    @routes.get("/{subject}/metadata", response_model=SchemaResponse)
    def latest_with_metadata(
        subject: Segment,
        access: AccessDependency,
        *,
        key: Annotated[list[str], Query()] = [],
        value: Annotated[list[str], Query()] = [],
        format: str = "",
        deleted: bool = False,
    ) -> Response:
        """The newest version whose metadata has all these properties."""
        properties = dict(zip(key, value, strict=False))
        return json_response(
            registry.seen_by(access).latest_with_metadata(subject, properties, style=format, deleted=deleted)
        )


def _add_registration(routes: APIRouter, registry: Registry) -> None:
    @routes.post("/{subject}", response_model=SchemaResponse)
    def look_up(
        subject: Segment,
        body: SchemaBody,
        access: AccessDependency,
        *,
        normalize: bool = False,
        format: str = "",
        deleted: bool = False,
    ) -> Response:
        """Look up the id and version of a schema under a subject."""
        return json_response(
            registry.seen_by(access).look_up(subject, body, normalize=normalize, style=format, deleted=deleted)
        )

    @routes.post("/{subject}/versions", response_model=SchemaResponse)
    def register(
        subject: Segment,
        body: SchemaBody,
        access: AccessDependency,
        *,
        normalize: bool = False,
        format: str = "",
        force: bool = False,
    ) -> Response:
        """Register a schema under a subject; registering it again changes nothing."""
        found = registry.seen_by(access).register(subject, body, normalize=normalize, style=format, force=force)
        if not format and found.schema_type == SchemaType.PROTOBUF and is_serialized(body.schema_ or ""):
            # The client sent a descriptor, and would cache the text in its place: Confluent's Python client does.
            found = found.model_copy(update={"schema_": None})
        return json_response(found)


def _add_versions(routes: APIRouter, registry: Registry) -> None:
    @routes.get("/{subject}/versions", response_model=list[int])
    def versions(
        subject: Segment,
        access: AccessDependency,
        *,
        deleted: bool = False,
        deletedOnly: bool = False,
        deletedAsNegative: bool = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """The version numbers of a subject."""
        found = registry.seen_by(access).versions(
            subject,
            deleted=deleted,
            deleted_only=deletedOnly,
            deleted_as_negative=deletedAsNegative,
            offset=offset,
            limit=limit,
        )
        return list_response(found)

    @routes.get("/{subject}/versions/{version}", response_model=SchemaResponse)
    def one_version(
        subject: Segment,
        version: Segment,
        access: AccessDependency,
        *,
        format: str = "",
        referenceFormat: str = "",
        deleted: bool = False,
        findTags: Words = _NONE,
    ) -> Response:
        """One version of a subject, by number or `latest`."""
        found = registry.seen_by(access).version(
            subject, version, style=format, reference_style=referenceFormat, deleted=deleted, find_tags=findTags
        )
        return json_response(found)

    @routes.delete("/{subject}/versions/{version}", response_model=int)
    def delete_version(
        subject: Segment, version: Segment, access: AccessDependency, *, permanent: bool = False
    ) -> Response:
        """Delete one version: softly first, then with `permanent`."""
        return number_response(registry.seen_by(access).delete_version(subject, version, permanent=permanent))


def _add_version_details(routes: APIRouter, registry: Registry) -> None:
    @routes.get("/{subject}/versions/{version}/schema", response_model=str)
    def text(
        subject: Segment, version: Segment, access: AccessDependency, *, format: str = "", deleted: bool = False
    ) -> Response:
        """Only the text of a version."""
        return text_response(registry.seen_by(access).version(subject, version, style=format, deleted=deleted).schema_)

    @routes.get("/{subject}/versions/{version}/referencedby", response_model=list[int])
    def referenced_by(
        subject: Segment,
        version: Segment,
        access: AccessDependency,
        *,
        deleted: bool = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """The ids of the schemas that reference a version."""
        return list_response(
            registry.seen_by(access).referenced_by(subject, version, deleted=deleted, offset=offset, limit=limit)
        )

    @routes.post("/{subject}/versions/{version}/tags", response_model=SchemaResponse)
    def tag(subject: Segment, version: Segment, body: TagBody, access: AccessDependency) -> Response:
        """Add or remove tags of a version's records and fields; this makes a new version."""
        return json_response(registry.seen_by(access).tag(subject, version, body))
