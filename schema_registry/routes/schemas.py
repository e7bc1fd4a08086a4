"""`/schemas`: schemas by id, by guid, or all of them."""

from fastapi import APIRouter, Response

from core_broker.service.web.paths import Segment
from schema_registry.formats.schema import SchemaType
from schema_registry.models import ContextId, SchemaResponse, SubjectVersion
from schema_registry.registry.listings import SchemaFilter
from schema_registry.registry.registry import Registry
from schema_registry.routes.guard import AccessDependency, GuardedRoute
from schema_registry.routes.parameters import Limit, Offset, Words
from schema_registry.routes.responses import json_response, list_response, text_response
from schema_registry.store.associations import Filter

_NONE: list[str] = []


def router(registry: Registry) -> APIRouter:
    """The routes of `/schemas`."""
    routes = APIRouter(prefix="/schemas", tags=["schemas"], route_class=GuardedRoute)

    @routes.get("/types", response_model=list[str])
    def types() -> Response:
        """The formats that schemas may be written in."""
        return list_response([SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO])

    @routes.get("", response_model=list[SchemaResponse])
    def schemas(
        access: AccessDependency,
        *,
        subjectPrefix: str = "",
        aliases: bool = False,
        deleted: bool = False,
        latestOnly: bool = False,
        ruleType: str = "",
        resourceType: str = "",
        associationType: Words = _NONE,
        lifecycle: str = "",
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """Search schemas by the prefix of their subject, and by its associations."""
        associated = None
        if resourceType or associationType or lifecycle:
            associated = Filter(
                resource_type=resourceType or None, association_types=associationType, lifecycle=lifecycle or None
            )
        wanted = SchemaFilter(deleted=deleted, latest_only=latestOnly, rule_type=ruleType, associated=associated)
        return list_response(
            registry.seen_by(access).schemas(subjectPrefix, wanted, aliases=aliases, offset=offset, limit=limit)
        )

    _add_by_id(routes, registry)
    _add_by_guid(routes, registry)
    return routes


def _add_by_id(routes: APIRouter, registry: Registry) -> None:
    @routes.get("/ids/{schema_id}", response_model=SchemaResponse)
    def by_id(
        schema_id: int,
        access: AccessDependency,
        *,
        subject: str | None = None,
        format: str = "",
        referenceFormat: str = "",
        fetchMaxId: bool = False,
        findTags: Words = _NONE,
    ) -> Response:
        """The schema with an id."""
        answer = registry.seen_by(access).schema_by_id(
            schema_id,
            subject=subject,
            style=format,
            reference_style=referenceFormat,
            fetch_max_id=fetchMaxId,
            find_tags=findTags,
        )
        return json_response(answer, etag=answer.guid)

    @routes.get("/ids/{schema_id}/schema", response_model=str)
    def text_by_id(
        schema_id: int, access: AccessDependency, *, subject: str | None = None, format: str = ""
    ) -> Response:
        """Only the text of the schema with an id."""
        return text_response(registry.seen_by(access).schema_by_id(schema_id, subject=subject, style=format).schema_)

    @routes.get("/ids/{schema_id}/subjects", response_model=list[str])
    def subjects(
        schema_id: int,
        access: AccessDependency,
        *,
        subject: str | None = None,
        deleted: bool = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """The subjects that use a schema."""
        found = registry.seen_by(access).subjects_of_id(
            schema_id, subject=subject, deleted=deleted, offset=offset, limit=limit
        )
        return list_response(found)

    @routes.get("/ids/{schema_id}/versions", response_model=list[SubjectVersion])
    def versions(
        schema_id: int,
        access: AccessDependency,
        *,
        subject: str | None = None,
        deleted: bool = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """The subjects and versions that use a schema."""
        found = registry.seen_by(access).versions_of_id(
            schema_id, subject=subject, deleted=deleted, offset=offset, limit=limit
        )
        return list_response(found)


def _add_by_guid(routes: APIRouter, registry: Registry) -> None:
    @routes.get("/guids/{guid}", response_model=SchemaResponse)
    def by_guid(guid: Segment, access: AccessDependency, *, format: str = "") -> Response:
        """The schema with a guid, which is the same in every registry."""
        return json_response(registry.seen_by(access).schema_by_guid(guid, style=format), etag=guid)

    @routes.get("/guids/{guid}/ids", response_model=list[ContextId])
    def ids(guid: Segment, access: AccessDependency) -> Response:
        """The ids of a schema in each context."""
        return list_response(registry.seen_by(access).ids_of_guid(guid))
