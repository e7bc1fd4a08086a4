"""The registry's access rules over HTTP: every route, and every other way to what a route does not name."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from schema_registry.routes.access_table import ROWS
from tests.support.patience import eventually
from tests.support.postgres import PostgresServer
from tests.support.registry_access import ADMIN, ALICE, BOB, Administrator, GuardedRegistry, User, rule, users_file
from tests.support.registry_access_cases import CASES, PATHS, PREPARED, SCHEMA, Case

pytestmark = pytest.mark.timeout(120)


class World:
    """A registry, and those who use it."""

    def __init__(self, registry: GuardedRegistry) -> None:
        self.registry = registry
        self.admin = Administrator(registry.url, ADMIN)
        self.alice = User(registry.url, ALICE)
        self.strangers = (
            User(registry.url, None),
            User(registry.url, ("alice", "wrong")),
            User(registry.url, ("no", "no")),
        )
        for method, path, body in PREPARED:
            self.admin.ask(method, path, body)
        found = self.admin.get("/subjects/orders/versions/latest")
        self.paths = {**PATHS, "schema_id": str(found["id"]), "guid": found["guid"]}

    def prepare(self, case: Case) -> None:
        """Make all that requests are about, and what this one needs."""
        for method, path, body in PREPARED:
            self.admin.ask(method, path, body)
        for method, path, body in case.before:
            self.admin.do(method, path, body)

    def close(self) -> None:
        """Close all connections."""
        for one in (self.admin, self.alice, *self.strangers):
            one.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with GuardedRegistry(tmp_path_factory.mktemp("registry")) as registry:
        world = World(registry)
        yield world
        world.close()


def granted(needs: list[str], subject: str = "orders") -> list[dict[str, str]]:
    """The rules that give alice these rights."""
    pairs = [need.split() for need in needs]
    return [rule(operation, subject if kind == "SUBJECT" else "") for operation, kind in pairs]


def elsewhere(need: str) -> list[dict[str, str]]:
    """All rights but one, on the same resource and on another subject."""
    operation, kind = need.split()
    others = {"READ", "WRITE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"} - {operation}
    implying = {"DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"}, "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"}}
    others -= implying.get(operation, set())
    here = granted([f"{other} {kind}" for other in sorted(others)])
    return [*here, rule(operation, "other")] if kind == "SUBJECT" else here


@pytest.mark.parametrize("route", CASES)
def test_a_route_needs_its_rights_and_no_other(world: World, route: str) -> None:
    case = CASES[route]
    method, path = re.sub(r"\{(\w+)\}", lambda found: world.paths[found[1]], route).split()
    world.prepare(case)
    for stranger in world.strangers:
        refusal = stranger.ask(method, path, case.body)
        assert (refusal.status_code, refusal.json()["error_code"]) == (401, 401)
        assert "www-authenticate" in refusal.headers
    for missing in case.needs:
        others = [need for need in case.needs if need != missing]
        world.admin.allow(*granted(others), *granted(others, "absent"), *elsewhere(missing))
        refusal = world.alice.ask(method, path, case.body)
        assert (refusal.status_code, refusal.json()["error_code"]) == (403, 40301), f"without {missing}"
        absent = world.alice.ask(method, path.replace("orders", "absent"), case.body)
        if "SUBJECT" in missing and absent.url != refusal.url:
            # What is refused looks the same whether it exists or not.
            assert absent.text.replace("absent", "orders") == refusal.text
    world.admin.allow(*granted(list(case.needs)))
    answer = world.alice.ask(method, path, case.body)
    if case.shows is None:
        assert answer.is_success, answer.text
        return
    assert case.shows not in answer.text
    assert answer.status_code == 404 or answer.is_success
    world.admin.allow(rule("READ", "orders"))
    assert case.shows in world.alice.ask(method, path, case.body).text
    world.admin.allow()
    assert case.shows not in world.alice.ask(method, path, case.body).text


def test_the_walk_takes_every_route_of_the_document(world: World) -> None:
    document = world.admin.get("/openapi.json")
    methods = ("get", "put", "post", "delete", "patch", "head", "options")
    routes = {
        f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item if method in methods
    }
    assert routes == set(CASES) == set(ROWS)
    assert document["security"] == [{"basic": []}]


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/redoc", "/nowhere"])
def test_nothing_answers_without_a_login(world: World, path: str) -> None:
    assert [stranger.ask("GET", path).status_code for stranger in world.strangers] == [401] * 3


# --- what the path does not name ---


def test_an_alias_gives_no_rights_to_what_it_stands_for(world: World) -> None:
    world.admin.register("hidden", SCHEMA)
    world.admin.do("PUT", "/config/alice-alias", {"alias": "hidden"})
    world.admin.allow(rule("ALL", "alice-", pattern_type="PREFIXED"))
    body = {"schema": SCHEMA}
    asked = [
        ("GET", "/subjects/alice-alias/versions/1", None),
        ("GET", "/subjects/alice-alias/versions", None),
        ("POST", "/subjects/alice-alias", body),
        ("POST", "/subjects/alice-alias/versions", body),
        ("POST", "/compatibility/subjects/alice-alias/versions", body),
        ("DELETE", "/subjects/alice-alias/versions/1", None),
        ("DELETE", "/subjects/alice-alias", None),
    ]
    refusals = [world.alice.ask(*one) for one in [*asked, ("GET", "/schemas/ids/1?subject=alice-alias", None)]]
    assert [refusal.status_code for refusal in refusals] == [403] * len(refusals)
    assert not any("hidden" in refusal.text for refusal in refusals)
    world.admin.register(":.away:hidden", SCHEMA)
    world.admin.do("PUT", "/config/:.alias:", {"alias": ":.away:hidden"})
    world.admin.allow(rule("ALL", "alice-", pattern_type="PREFIXED"), rule("ALL", ":.alias:", pattern_type="PREFIXED"))
    assert world.alice.code("GET", "/subjects/:.alias:/versions") == 40301
    world.admin.allow(rule("ALL", "alice-", pattern_type="PREFIXED"), rule("READ", "hidden"))
    assert world.alice.get("/subjects/alice-alias/versions") == [1]


def test_a_reference_needs_the_right_to_read_its_subject(world: World) -> None:
    world.admin.register("money", '{"type":"record","name":"Money","fields":[]}')
    schema = '{"type":"record","name":"Bill","fields":[{"name":"sum","type":"Money"}]}'
    body = {"schema": schema, "references": [{"name": "Money", "subject": "money", "version": 1}]}
    absent = {**body, "references": [{"name": "Money", "subject": "nomey", "version": 1}]}
    world.admin.allow(rule("ALL", "bills"))
    for path in ("/subjects/bills/versions", "/subjects/bills", "/compatibility/subjects/bills/versions"):
        refusals = [world.alice.ask("POST", path, one) for one in (body, absent)]
        assert [refusal.status_code for refusal in refusals] == [403, 403]
        assert refusals[0].text == refusals[1].text.replace("nomey", "money")
    world.admin.allow(rule("ALL", "bills"), rule("READ", "money"))
    found = world.alice.do("POST", "/subjects/bills/versions", body)
    resolved = f"/schemas/ids/{found['id']}?format=resolved"
    assert "Money" in world.alice.get(resolved)["schema"]
    world.admin.allow(rule("ALL", "bills"))
    assert world.alice.code("GET", resolved) == 40301
    assert world.admin.get("/subjects/money/versions/1/referencedby") == [found["id"]]
    world.admin.allow(rule("READ", "money"))
    assert world.alice.get("/subjects/money/versions/1/referencedby") == []


def test_a_subject_in_another_context_is_found_only_by_those_who_may_read_it(world: World) -> None:
    text = '{"type":"record","name":"Far","fields":[]}'
    found = world.admin.register(":.far:lonely", text)
    world.admin.allow(rule("ALL", "lonely"))
    path = f"/schemas/ids/{found['id']}?subject=:.far:"
    assert world.alice.code("GET", "/subjects/lonely/versions/1") == 40401
    assert world.alice.code("POST", "/subjects/lonely", {"schema": text}) == 40401
    assert world.alice.code("GET", path) == 40403
    assert world.alice.get("/contexts") == []
    world.admin.allow(rule("ALL", "lonely"), rule("READ", ":.far:", pattern_type="PREFIXED"))
    assert world.alice.get("/subjects/lonely/versions/1")["schema"] == text
    assert world.alice.get(f"/contexts/.far/schemas/ids/{found['id']}")["schema"] == text
    assert world.alice.get("/contexts") == [".far"]


def test_an_id_that_is_hidden_looks_like_one_that_does_not_exist(world: World) -> None:
    world.admin.allow()
    hidden = world.alice.ask("GET", f"/schemas/ids/{world.paths['schema_id']}")
    absent = world.alice.ask("GET", "/schemas/ids/99999")
    assert hidden.status_code == 404
    assert hidden.text.replace(world.paths["schema_id"], "99999") == absent.text


def test_a_schema_of_several_subjects_names_only_those_that_the_caller_may_read(world: World) -> None:
    text = '{"type":"record","name":"Shared","fields":[]}'
    found = [world.admin.register(subject, text) for subject in ("mine", "yours", ":.far:mine", ":.far:yours")]
    world.admin.allow(rule("READ", "mine"), rule("READ", ":.far:yours"))
    ids = f"/schemas/ids/{found[0]['id']}"
    assert world.alice.get(f"{ids}/subjects") == ["mine"]
    assert world.alice.get(f"{ids}/versions") == [{"subject": "mine", "version": 1}]
    assert world.alice.get(f"/schemas/ids/{found[2]['id']}/subjects?subject=:.far:") == [":.far:yours"]
    contexts = [one["context"] for one in world.alice.get(f"/schemas/guids/{found[0]['guid']}/ids")]
    assert contexts == [".", ".far"]
    world.admin.allow(rule("READ", ":.far:yours"))
    contexts = [one["context"] for one in world.alice.get(f"/schemas/guids/{found[0]['guid']}/ids")]
    assert contexts == [".far"]


def test_a_search_with_aliases_names_neither_hidden_aliases_nor_hidden_subjects(world: World) -> None:
    for subject in ("goal-seen", "goal-hidden"):
        world.admin.register(subject, SCHEMA)
        world.admin.do("PUT", f"/config/alias-of-{subject}", {"alias": subject})
    search = "/schemas?aliases=true&subjectPrefix=alias-of-goal"
    assert [one["subject"] for one in world.admin.get(search)] == ["goal-hidden", "goal-seen"]
    world.admin.allow(rule("READ", "goal-seen"))
    assert world.alice.get(search) == []
    world.admin.allow(rule("READ", "goal-seen"), rule("DESCRIBE_CONFIGS", "alias-of-", pattern_type="PREFIXED"))
    assert [(one["subject"], one["aliases"]) for one in world.alice.get(search)] == [
        ("goal-seen", ["alias-of-goal-seen"])
    ]


def test_the_cache_of_responses_asks_the_rules(world: World) -> None:
    path = f"/schemas/ids/{world.paths['schema_id']}"
    before = world.admin.ask("GET", "/metrics").text
    world.admin.allow(rule("READ", "orders"))
    assert [world.alice.ask("GET", path).status_code for _ in range(3)] == [200] * 3
    world.admin.allow()
    assert world.alice.ask("GET", path).status_code == 404
    assert world.admin.ask("GET", path).status_code == 200
    assert hits(world.admin.ask("GET", "/metrics").text) >= hits(before) + 2


def hits(metrics: str) -> float:
    """How often the cache had the response."""
    found = re.search(r"^caudal_registry_ready_answers_total (\S+)", metrics, re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_an_empty_schema_with_metadata_does_not_show_the_one_before_to_a_writer(world: World) -> None:
    world.admin.allow(rule("WRITE", "orders"))
    body = {"schema": "", "metadata": {"properties": {"owner": "alice"}}}
    assert world.alice.code("POST", "/subjects/orders/versions", body) == 40301


def test_what_is_set_for_a_whole_context_needs_a_rule_about_it(world: World) -> None:
    world.admin.allow(rule("ALTER_CONFIGS", ":.team:", pattern_type="PREFIXED"))
    level = {"compatibility": "FULL"}
    world.alice.do("PUT", "/contexts/.team/config", level)
    world.alice.do("PUT", "/config/:.team:orders", level)
    assert [
        world.alice.code("PUT", f"/config/{name}", level) for name in (":.:", ":.__GLOBAL:", ":.tea:", "orders")
    ] == [40301] * 4
    world.admin.allow(rule("ALTER_CONFIGS", "*"))
    assert [world.alice.code("PUT", f"/config/{name}", level) for name in (":.:", ":.__GLOBAL:")] == [40301] * 2


def test_an_encoded_or_oddly_written_subject_is_the_same_subject(world: World) -> None:
    world.admin.allow(rule("READ", "orders"), rule("READ", "orders", permission="DENY", host="127.0.0.1"))
    for name in ("orders", "%6Frders", ":.:orders", "%3A.%3Aorders"):
        assert world.alice.code("GET", f"/subjects/{name}/versions") == 40301
    assert world.alice.code("GET", "/contexts/:.:/subjects/orders/versions") == 40301


def test_a_batch_of_associations_is_refused_item_by_item(world: World) -> None:
    world.prepare(CASES["POST /associations:batchGet"])
    world.admin.allow(rule("READ"), rule("WRITE"))
    found = world.alice.do("POST", "/associations:batchGet", {"requests": [{"resourceId": "r1"}]})
    assert "orders" not in str(found)
    changed = world.alice.do("POST", "/associations:batchMutate", CASES["POST /associations:batchMutate"].body)
    assert changed["results"][0]["error"]["error_code"] == 40301


def test_keys_of_a_subject_need_a_right_on_it_even_through_an_alias(world: World) -> None:
    world.prepare(CASES["GET /dek-registry/v1/keks/{name}/deks"])
    world.admin.do("PUT", "/config/mine", {"aliasForDeks": "orders"})
    world.admin.allow(rule("READ"), rule("ALL", "mine"))
    assert world.alice.get("/dek-registry/v1/keks/thing/deks") == []
    assert world.alice.code("GET", "/dek-registry/v1/keks/thing/deks/mine") == 40301


# --- rules ---


def test_a_rule_can_be_read_back_filtered_and_deleted(world: World) -> None:
    world.admin.allow(rule("READ", "a"), rule("READ", "b"))
    assert [found["resource"] for found in world.admin.get("/security/acls?resource=a")] == ["a"]
    world.admin.do("POST", "/security/acls", [rule("READ", "a")])
    assert len(world.admin.get("/security/acls")) == 2
    removed = world.admin.do("DELETE", "/security/acls", [{"resource": "a"}])
    assert [found["resource"] for found in removed] == ["a"]
    assert [found["resource"] for found in world.admin.get("/security/acls")] == ["b"]


def test_the_search_shows_pages_of_what_the_caller_may_read(world: World) -> None:
    for number in range(6):
        world.admin.register(f"page-{number}", f'{{"type":"fixed","name":"F{number}","size":4}}')
    world.admin.allow(*(rule("READ", f"page-{number}") for number in (0, 2, 3, 5)))
    search = "/schemas?subjectPrefix=page-&latestOnly=true"
    assert [found["subject"] for found in world.alice.get(search)] == ["page-0", "page-2", "page-3", "page-5"]
    assert [found["subject"] for found in world.alice.get(f"{search}&offset=1&limit=2")] == ["page-2", "page-3"]
    assert world.alice.get("/subjects?subjectPrefix=page-&offset=1&limit=2") == ["page-2", "page-3"]


def test_permissions_of_a_file_count_beside_the_rules(world: World) -> None:
    bob = User(world.registry.url, BOB)
    world.admin.allow(rule("DELETE", "orders", who="User:bob", permission="DENY"))
    assert bob.code("GET", "/subjects/orders/versions") == 40301
    users_file(world.registry.file, permissions=[("bob", "Write", "Subject:ord"), ("bob", "Read", "Config:")])
    try:
        eventually(lambda: bob.ask("GET", "/subjects/orders/versions").status_code == 200)
        assert "compatibilityLevel" in bob.get("/config")
        assert bob.code("PUT", "/config", {"compatibility": "NONE"}) == 40301
        assert bob.code("PUT", "/mode/orders", {"mode": "READONLY"}) == 40301
        assert bob.code("DELETE", "/subjects/orders") == 40301, "a rule that denies wins"
        assert bob.get("/subjects") == ["orders"]
    finally:
        users_file(world.registry.file)
        bob.close()


@pytest.fixture
def side_by_side(tmp_path: Path, postgres: PostgresServer) -> Iterator[list[GuardedRegistry]]:
    """Two registries on one database."""
    settings = {"database.url": postgres.create_database()}
    with ExitStack() as running:
        yield [running.enter_context(GuardedRegistry(tmp_path / str(number), settings=settings)) for number in range(2)]


def test_registries_side_by_side_follow_each_other_s_rules(side_by_side: list[GuardedRegistry]) -> None:
    one, other = side_by_side
    with closing(Administrator(one.url, ADMIN)) as admin, closing(User(other.url, ALICE)) as alice:
        admin.register("orders", SCHEMA)
        assert alice.code("GET", "/subjects/orders/versions") == 40301
        admin.allow(rule("READ", "orders"))
        eventually(lambda: alice.ask("GET", "/subjects/orders/versions").status_code == 200)
        admin.allow()
        eventually(lambda: alice.ask("GET", "/subjects/orders/versions").status_code == 403)


def test_what_is_refused_and_what_is_changed_is_in_the_audit_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    with (
        GuardedRegistry(tmp_path / "registry", settings={"audit.log.file": str(log)}) as registry,
        closing(Administrator(registry.url, ADMIN)) as admin,
        closing(User(registry.url, ALICE)) as alice,
    ):
        admin.register("orders", SCHEMA)
        admin.allow(rule("READ", "orders"))
        alice.get("/subjects/orders/versions/1")
        alice.code("DELETE", "/subjects/orders")
        assert 'caudal_registry_access_denied_total{operation="DELETE"} 1' in admin.ask("GET", "/metrics").text
    events = [json.loads(line) for line in log.read_text().splitlines()]
    shown = {(event["event"], event["principal"], event["api"]) for event in events}
    assert shown == {
        ("changed", "User:admin", "POST /subjects/{subject}/versions"),
        ("changed", "User:admin", "CreateAcls"),
        ("denied", "User:alice", "DELETE /subjects/{subject}"),
    }
    denied = next(event for event in events if event["event"] == "denied")
    assert (denied["operation"], denied["resource"]) == ("DELETE", "SUBJECT:orders")
