"""What the OpenAPI document says about logins, and how AccessErrors are answered."""

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from core_broker.web_access.documented import add_access
from core_broker.web_access.errors import AccessError, Forbidden, TooManyFailures
from core_broker.web_access.settings import AccessSettings


def app_with(settings: AccessSettings, error: AccessError | None = None, **more: int) -> FastAPI:
    app = FastAPI()

    @app.get("/health")
    @app.get("/things")
    def things() -> None:
        if error is not None:
            raise error

    add_access(app, settings, **more)
    return app


def test_the_document_names_the_methods() -> None:
    document = app_with(AccessSettings(authentication_method=("BASIC", "BEARER", "CERTIFICATE"))).openapi()
    schemes = document["components"]["securitySchemes"]
    assert {name: scheme.get("scheme", scheme["type"]) for name, scheme in schemes.items()} == {
        "basic": "basic",
        "bearer": "bearer",
        "certificate": "mutualTLS",
    }
    assert document["security"] == [{"basic": []}, {"bearer": []}, {"certificate": []}]
    assert {"401", "403", "429"} <= document["paths"]["/things"]["get"]["responses"].keys()


def test_paths_without_login_are_marked() -> None:
    settings = AccessSettings(authentication_method=("BASIC",), authentication_skip_paths=("/health", "/other"))
    document = app_with(settings).openapi()
    assert document["paths"]["/health"]["get"]["security"] == []
    assert "security" not in document["paths"]["/things"]["get"]


def test_without_logins_the_document_is_as_it_was() -> None:
    document = app_with(AccessSettings()).openapi()
    assert "security" not in document
    assert "components" not in document


@pytest.mark.parametrize("code,more", [(40301, {}), (403, {"forbidden_code": 403})])
def test_each_service_has_its_code_for_what_is_forbidden(code: int, more: dict[str, int]) -> None:
    answer = TestClient(app_with(AccessSettings(), Forbidden("no"), **more)).get("/things")
    assert (answer.status_code, answer.json()) == (403, {"error_code": code, "message": "no"})


def test_an_error_says_when_to_come_back() -> None:
    answer = TestClient(app_with(AccessSettings(), TooManyFailures(7))).get("/things")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
