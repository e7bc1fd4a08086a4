"""CORS."""

from fastapi import FastAPI
from starlette.testclient import TestClient

from rest_proxy.routes.cross_origin import allow_origins
from rest_proxy.settings import ProxySettings

SHOP = "https://shop.example"


def client(**settings: str) -> TestClient:
    app = FastAPI()

    @app.get("/topics")
    def topics() -> list[str]:
        return ["orders"]

    return TestClient(
        allow_origins(app, ProxySettings.parse({key.replace("_", "."): value for key, value in settings.items()}))
    )


def preflight(origin: str, **settings: str) -> tuple[int, str | None]:
    """The answer to a browser that asks before it sends."""
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    answer = client(**settings).options("/topics", headers=asked)
    return answer.status_code, answer.headers.get("access-control-allow-origin")


def test_pages_of_allowed_origins_may_ask_and_read() -> None:
    assert preflight(SHOP, access_control_allow_origin=SHOP) == (200, SHOP)
    answer = client(access_control_allow_origin=SHOP).get("/topics", headers={"Origin": SHOP})
    assert answer.headers["access-control-allow-origin"] == SHOP
    assert "Retry-After" in answer.headers["access-control-expose-headers"]


def test_any_origin_may_be_allowed() -> None:
    assert preflight(SHOP, access_control_allow_origin="*") == (200, "*")


def test_other_origins_may_not() -> None:
    assert preflight("https://other.example", access_control_allow_origin=SHOP) == (400, None)


def test_methods_may_be_fewer() -> None:
    status, _ = preflight(SHOP, access_control_allow_origin=SHOP, access_control_allow_methods="GET,HEAD")
    assert status == 400


def test_other_origins_are_refused_by_default() -> None:
    assert preflight(SHOP) == (405, None)
    assert "access-control-allow-origin" not in client().get("/topics", headers={"Origin": SHOP}).headers
