"""Routes of the key registry: `/dek-registry/v1/keks…`."""

from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Response

from core_broker.service.web.paths import Segment
from schema_registry.models_deks import Dek, DekCreation, Kek, KekChange, KekCreation
from schema_registry.registry.dek_rules import invalid
from schema_registry.registry.deks import Deks
from schema_registry.routes.guard import AccessDependency, GuardedRoute
from schema_registry.routes.parameters import Flag, Limit, Offset
from schema_registry.routes.responses import json_response, list_response

Algorithm = Annotated[str | None, Query()]
"""AES128_GCM, AES256_GCM (the default) or AES256_SIV."""

T = TypeVar("T")

_NO_CONTENT = 204


def router(deks: Deks) -> APIRouter:
    """The key registry over HTTP."""
    routes = APIRouter(prefix="/dek-registry/v1/keks", tags=["keys"], route_class=GuardedRoute)
    _add_kek_routes(routes, deks)
    _add_dek_reads(routes, deks)
    _add_dek_writes(routes, deks)
    _add_dek_version_writes(routes, deks)
    return routes


def _add_kek_routes(routes: APIRouter, deks: Deks) -> None:
    @routes.get("", response_model=list[str])
    def list_keks(
        *,
        subject_prefix: Annotated[list[str] | None, Query(alias="subjectPrefix")] = None,
        deleted: Flag = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """The names of all key encryption keys (KEKs)."""
        names = deks.keks.names(subject_prefixes=subject_prefix or (), deleted=deleted)
        return list_response(_page(names, offset, limit))

    @routes.post("", response_model=Kek)
    def create_kek(body: KekCreation, *, test_sharing: Annotated[bool, Query(alias="testSharing")] = False) -> Response:
        """Create a KEK."""
        return json_response(deks.keks.create(body, test_sharing=test_sharing))

    @routes.get("/{name}", response_model=Kek)
    def get_kek(name: Segment, *, deleted: Flag = False) -> Response:
        """A KEK by name."""
        return json_response(deks.keks.get(name, deleted=deleted))

    @routes.put("/{name}", response_model=Kek)
    def change_kek(
        name: Segment, body: KekChange, *, test_sharing: Annotated[bool, Query(alias="testSharing")] = False
    ) -> Response:
        """Change the properties, the description or the sharing of a KEK."""
        return json_response(deks.keks.change(name, body, test_sharing=test_sharing))

    @routes.delete("/{name}", status_code=_NO_CONTENT)
    def delete_kek(name: Segment, *, permanent: Flag = False) -> Response:
        """Delete a KEK that wraps no keys."""
        deks.keks.delete(name, permanent=permanent)
        return Response(status_code=_NO_CONTENT)

    @routes.post("/{name}/undelete", status_code=_NO_CONTENT)
    def undelete_kek(name: Segment) -> Response:
        """Restore a soft-deleted KEK."""
        deks.keks.undelete(name)
        return Response(status_code=_NO_CONTENT)

    @routes.post("/{name}/test", response_model=Kek)
    def test_kek(name: Segment) -> Response:
        """Test whether the registry can use a shared KEK."""
        return json_response(deks.keks.test(name))


def _add_dek_reads(routes: APIRouter, deks: Deks) -> None:
    @routes.get("/{name}/deks", response_model=list[str])
    def list_subjects(
        name: Segment, access: AccessDependency, *, deleted: Flag = False, offset: Offset = 0, limit: Limit = -1
    ) -> Response:
        """The subjects whose keys this KEK wraps."""
        return list_response(_page(deks.seen_by(access).subjects(name, deleted=deleted), offset, limit))

    @routes.get("/{name}/deks/{subject}", response_model=Dek)
    def get_dek(
        name: Segment, subject: Segment, access: AccessDependency, *, algorithm: Algorithm = None, deleted: Flag = False
    ) -> Response:
        """The first version of a subject's data encryption key (DEK)."""
        return json_response(deks.seen_by(access).get(name, subject, algorithm=algorithm, deleted=deleted))

    @routes.get("/{name}/deks/{subject}/versions", response_model=list[int])
    def list_versions(
        name: Segment,
        subject: Segment,
        access: AccessDependency,
        *,
        algorithm: Algorithm = None,
        deleted: Flag = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        """The versions of a subject's DEK."""
        versions = deks.seen_by(access).versions(name, subject, algorithm=algorithm, deleted=deleted)
        return list_response(_page(versions, offset, limit))

    @routes.get("/{name}/deks/{subject}/versions/{version}", response_model=Dek)
    def get_dek_version(
        name: Segment,
        subject: Segment,
        version: Segment,
        access: AccessDependency,
        *,
        algorithm: Algorithm = None,
        deleted: Flag = False,
    ) -> Response:
        """One version of a subject's DEK."""
        return json_response(
            deks.seen_by(access).get(name, subject, version=version, algorithm=algorithm, deleted=deleted)
        )


def _add_dek_writes(routes: APIRouter, deks: Deks) -> None:
    @routes.post("/{name}/deks", response_model=Dek)
    def create_dek(name: Segment, body: DekCreation, access: AccessDependency, *, rewrap: Flag = False) -> Response:
        """Create a DEK."""
        return json_response(deks.seen_by(access).create(name, body, rewrap=rewrap))

    @routes.post("/{name}/deks/{subject}", response_model=Dek)
    def create_subjects_dek(
        name: Segment, subject: Segment, body: DekCreation, access: AccessDependency, *, rewrap: Flag = False
    ) -> Response:
        """Create a DEK; a proxy can authorize the request by the subject in the path."""
        # The body may repeat the subject of the path, with or without its context.
        if body.subject and body.subject != subject and not subject.endswith(f":{body.subject}"):
            raise invalid("subject")
        return json_response(
            deks.seen_by(access).create(name, body.model_copy(update={"subject": subject}), rewrap=rewrap)
        )

    @routes.delete("/{name}/deks/{subject}", status_code=_NO_CONTENT)
    def delete_deks(
        name: Segment,
        subject: Segment,
        access: AccessDependency,
        *,
        algorithm: Algorithm = None,
        permanent: Flag = False,
    ) -> Response:
        """Delete all versions of a subject's DEK."""
        deks.seen_by(access).delete(name, subject, algorithm=algorithm, permanent=permanent)
        return Response(status_code=_NO_CONTENT)

    @routes.post("/{name}/deks/{subject}/undelete", status_code=_NO_CONTENT)
    def undelete_deks(
        name: Segment, subject: Segment, access: AccessDependency, *, algorithm: Algorithm = None
    ) -> Response:
        """Restore all soft-deleted versions of a subject's DEK."""
        deks.seen_by(access).undelete(name, subject, algorithm=algorithm)
        return Response(status_code=_NO_CONTENT)


def _add_dek_version_writes(routes: APIRouter, deks: Deks) -> None:
    @routes.delete("/{name}/deks/{subject}/versions/{version}", status_code=_NO_CONTENT)
    def delete_dek(
        name: Segment,
        subject: Segment,
        version: Segment,
        access: AccessDependency,
        *,
        algorithm: Algorithm = None,
        permanent: Flag = False,
    ) -> Response:
        """Delete one version of a subject's DEK."""
        deks.seen_by(access).delete(name, subject, version=version, algorithm=algorithm, permanent=permanent)
        return Response(status_code=_NO_CONTENT)

    @routes.post("/{name}/deks/{subject}/versions/{version}/undelete", status_code=_NO_CONTENT)
    def undelete_dek(
        name: Segment, subject: Segment, version: Segment, access: AccessDependency, *, algorithm: Algorithm = None
    ) -> Response:
        """Restore one soft-deleted version of a subject's DEK."""
        deks.seen_by(access).undelete(name, subject, version=version, algorithm=algorithm)
        return Response(status_code=_NO_CONTENT)


def _page(items: list[T], offset: int, limit: int) -> list[T]:
    return items[offset:] if limit < 0 else items[offset : offset + limit]
