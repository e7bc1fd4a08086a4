"""Every route of a secured platform: without a login, with wrong ones, without rights and with all of them.

What exactly a route needs is in `test_registry_access.py`, `test_proxy_access.py` and `test_connect_access.py`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.support.authority import AuthorityFolder
from tests.support.route_walk import Operation, operations_of, status, walked
from tests.support.sasl_world import signing_key
from tests.support.secured_services import (
    NOTHING,
    SERVICES,
    LoginWith,
    SecuredServices,
    by_password,
    by_token,
    secured_services,
)
from tests.support.walked_services import FURNISH, Walk

pytestmark = pytest.mark.timeout(300)

NOT_OF_THE_CLUSTER: Final = ("getHealth", "getMetrics", "getRootV2", "postRootV2")
ROUTES_MIN: Final = {"registry": 70, "rest-proxy": 80, "connect": 35}


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServices]:
    with secured_services(tmp_path_factory.mktemp("services")) as running:
        yield running


def operations(services: SecuredServices, service: str) -> list[Operation]:
    """All routes of a service, by its own document."""
    with services.client(service, services.admin()) as admin:
        found = operations_of(admin.get("/openapi.json").json())
    assert len(found) >= ROUTES_MIN[service]
    return found


# --- every route -----------------------------------------------------------------------------------------------------

WRONG_LOGINS: Final = (
    "nothing",
    "wrong password",
    "unknown user",
    "expired token",
    "token of an unknown key",
    "token for others",
    "token without a signature",
)


def wrong_login(services: SecuredServices, kind: str) -> LoginWith:
    match kind:
        case "nothing":
            return NOTHING
        case "wrong password":
            return by_password("admin", "not-the-password")
        case "unknown user":
            return by_password("stranger", "no-password-at-all")
        case "expired token":
            return by_token(services.token("admin", lasts_s=-10))
        case "token of an unknown key":
            return by_token(services.token("admin", signing_key("stranger")))
        case "token for others":
            return by_token(services.token("admin", aud="others"))
        case _:
            header, claims, _signature = services.token("admin").split(".")
            return by_token(f"{header}.{claims}.")


@pytest.mark.parametrize("service", SERVICES)
def test_no_route_answers_without_a_login_or_with_a_wrong_one(services: SecuredServices, service: str) -> None:
    routes = operations(services, service)
    for kind in WRONG_LOGINS:
        with services.client(service, wrong_login(services, kind)) as stranger:
            assert list(walked(routes, stranger, status(401))) == [], kind


@pytest.fixture(scope="module")
def walks(services: SecuredServices) -> dict[str, Walk]:
    """The routes of each service, asked for things that are there and that belong to the administrator."""
    found = {}
    for service, furnish in FURNISH.items():
        with services.client(service, services.admin()) as admin:
            found[service] = furnish(admin, services.files)
    return found


def login_of(services: SecuredServices, way: str) -> LoginWith:
    """A user who has no rights."""
    match way:
        case "password":
            return services.add_user("zoe", "password-of-zoe")
        case "token":
            return by_token(services.token("zoe"))
        case _:
            return LoginWith(certificate=services.certificate("zoe"))


@pytest.mark.parametrize(
    ("service", "way"),
    [
        *((service, way) for service in ("registry", "connect") for way in ("password", "token", "certificate")),
        ("rest-proxy", "password"),  # with tokens: test_proxy_access.py
        ("rest-proxy", "certificate"),
    ],
)
def test_no_route_shows_or_changes_anything_for_a_user_without_rights(
    services: SecuredServices, walks: dict[str, Walk], service: str, way: str
) -> None:
    routes = walks[service]
    expected = routes.to_a_stranger
    if (service, way) == ("rest-proxy", "certificate"):  # nothing of it can be passed on to the cluster
        expected = {name: judge for name, judge in expected.items() if name in NOT_OF_THE_CLUSTER}
    with services.client(service, login_of(services, way)) as zoe:
        assert list(walked(routes.operations, zoe, status(403, 404), expected)) == []
        if (service, way) == ("rest-proxy", "password"):
            assert zoe.delete("/consumers/billing/instances/another").status_code == 204


@pytest.mark.parametrize("service", SERVICES)
def test_every_route_works_for_a_user_with_all_rights(
    services: SecuredServices, walks: dict[str, Walk], service: str
) -> None:
    routes = walks[service]
    # A new client of the cluster that has a token waits for a second, and the REST proxy needs many.
    login = services.admin() if service == "rest-proxy" else by_token(services.token("admin"))
    with services.client(service, login) as admin:
        assert list(walked(routes.operations, admin, is_success, routes.to_an_administrator)) == []


def is_success(answer: httpx2.Response) -> bool:
    return answer.is_success


def test_a_certificate_of_another_authority_is_no_login_anywhere(services: SecuredServices, tmp_path: Path) -> None:
    stranger = AuthorityFolder(tmp_path / "stranger", "Caudal authority")
    urls = [*(f"{services.platform.url(service)}/health" for service in SERVICES), services.metrics_url]
    for file in (stranger.issue("admin"), stranger.issue("launcher", has_expired=True)):
        with services.client("registry", LoginWith(certificate=file)) as client:
            for url in urls:
                with pytest.raises(httpx2.HTTPError):
                    client.get(url)
    with services.client("registry", LoginWith(certificate=services.certificate("admin"))) as client:
        assert [client.get(url).status_code for url in urls] == [200] * len(urls)


def test_the_metrics_page_of_a_broker_takes_a_certificate_alone(services: SecuredServices) -> None:
    page = services.metrics_url
    for login in (NOTHING, services.admin(), by_token(services.token("admin"))):
        with services.client("registry", login) as client:
            for url in (page, page.replace("/metrics", "/health"), page.replace("https:", "http:")):
                with pytest.raises(httpx2.HTTPError):
                    client.get(url)
