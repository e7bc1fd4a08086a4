"""Answers given ahead of the router: only those that stay true, never longer than allowed, never too many."""

import asyncio
from typing import Any

import pytest

from core_broker.protocol.principals import Principal
from core_broker.service.clock import ManualClock
from core_broker.service.web.asgi import Message, Receive, Scope, Send
from core_broker.web_access.callers import Caller, set_caller
from core_broker.web_access.rules import Operation, Permission, ResourceType, Rule, Rules
from schema_registry.registry.access import AccessRules
from schema_registry.routes.guard import SHOWN_THROUGH
from schema_registry.routes.response_cache import ResponseCache
from tests.support.registry_access import enforced_rules

ID = "/schemas/ids/1"


class Backend:
    """Counts what reaches it, and answers with that number."""

    def __init__(
        self, status: int = 200, size: int = 0, rest: bytes = b"", shown_through: tuple[str, ...] = ()
    ) -> None:
        self.shown_through = shown_through
        self.calls = 0
        self.status = status
        self.rest = rest + b" " * size
        self.meanwhile: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.calls += 1
        if self.meanwhile:
            self.meanwhile()
        if self.shown_through:
            scope[SHOWN_THROUGH].extend(self.shown_through)
        await send({"type": "http.response.start", "status": self.status, "headers": [(b"etag", b'"g"')]})
        await send({"type": "http.response.body", "body": b"%d" % self.calls + self.rest})


def ask(
    app: ResponseCache,
    target: str = ID,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    caller: Caller | None = None,
) -> Any:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("the body must not be read")

    path, _, query = target.partition("?")
    scope: Scope = {
        "type": "http",
        "method": method,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
    }
    if caller is not None:
        set_caller(scope, caller)
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], sent[1]["body"].strip()


def cache(backend: Backend, *, max_bytes: int = 100_000, clock: ManualClock | None = None) -> ResponseCache:
    return ResponseCache(backend, max_bytes=max_bytes, ttl_seconds=10, now=(clock or ManualClock()).monotonic)


def test_a_schema_is_asked_for_once() -> None:
    app = cache(Backend())
    assert [ask(app) for _ in range(3)] == [(200, b"1")] * 3
    assert app.hits == 2


@pytest.mark.parametrize(
    "target",
    [ID + "?fetchMaxId=true", ID + "/subjects", ID + "/versions", ID + "/versions/", "/schemas/guids/x/ids",
     "/subjects/s", "/contexts/.a/subjects/s"],
)  # fmt: skip
def test_what_can_change_is_never_kept(target: str) -> None:
    app = cache(Backend())
    assert [ask(app, target) for _ in range(2)] == [(200, b"1"), (200, b"2")]


def test_the_same_path_with_another_query_or_type_is_another_answer() -> None:
    app = cache(Backend())
    answers = [ask(app), ask(app, ID + "?format=resolved"), ask(app, headers={"accept": "application/json"})]
    assert answers == [(200, b"1"), (200, b"2"), (200, b"3")]


def test_failures_are_not_kept() -> None:
    app = cache(Backend(status=404))
    assert [ask(app) for _ in range(2)] == [(404, b"1"), (404, b"2")]


def test_an_answer_expires() -> None:
    clock = ManualClock()
    app = cache(Backend(), clock=clock)
    ask(app)
    clock.advance(9_000)
    assert ask(app) == (200, b"1")
    clock.advance(2_000)
    assert ask(app) == (200, b"2")


def test_what_is_deleted_is_never_kept_for_it_may_come_back() -> None:
    backend = Backend(rest=b'{"deleted":true}')
    app = cache(backend)
    assert (ask(app)[0], ask(app)[0], backend.calls) == (200, 200, 2)


def test_a_delete_forgets_all() -> None:
    app = cache(Backend())
    ask(app)
    app.clear()
    assert ask(app) == (200, b"2")


def test_an_answer_that_was_read_before_a_permanent_delete_is_not_kept_after_it() -> None:
    backend = Backend()
    app = cache(backend)
    backend.meanwhile = app.clear
    ask(app)
    backend.meanwhile = None
    assert ask(app) == (200, b"2")


def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    app = cache(Backend(size=1000), max_bytes=5_000)
    for number in range(1, 5):
        ask(app, f"/schemas/ids/{number}")
    assert ask(app, "/schemas/ids/4") == (200, b"4")
    assert ask(app, "/schemas/ids/1") == (200, b"5")


def test_an_answer_larger_than_all_memory_is_not_kept() -> None:
    app = cache(Backend(size=10_000), max_bytes=5_000)
    assert [ask(app) for _ in range(2)] == [(200, b"1"), (200, b"2")]


def test_a_client_that_has_the_response_gets_not_modified() -> None:
    app = cache(Backend())
    ask(app)
    assert ask(app, headers={"if-none-match": '"g"'}) == (304, b"")
    assert ask(app, headers={"if-none-match": '"other"'}) == (200, b"1")


def test_other_methods_pass_by() -> None:
    app = cache(Backend())
    ask(app)
    assert ask(app, method="DELETE") == (200, b"2")


# --- with access rules ---

ALICE = Caller(Principal("User", "alice"), "10.0.0.1")
BOB = Caller(Principal("User", "bob"), "10.0.0.1")


def guarding_cache(backend: Backend, **readers: str) -> tuple[ResponseCache, Rules]:
    """A cache whose callers may each read one subject."""
    rules = enforced_rules(
        *(
            Rule(
                principal=f"User:{name}",
                resource=subject,
                resource_type=ResourceType.SUBJECT,
                operation=Operation.READ,
                permission=Permission.ALLOW,
            )
            for name, subject in readers.items()
        )
    )
    return ResponseCache(backend, max_bytes=100_000, ttl_seconds=10, rules=AccessRules(rules)), rules


def test_a_response_is_kept_for_everyone_who_may_read_one_of_its_subjects() -> None:
    app, _ = guarding_cache(Backend(shown_through=("a", "b")), alice="a", bob="b")
    assert [ask(app, caller=caller) for caller in (ALICE, BOB, ALICE)] == [(200, b"1")] * 3


def test_others_are_passed_on_to_the_router() -> None:
    app, _ = guarding_cache(Backend(shown_through=("a",)), alice="a", bob="b")
    assert [ask(app, caller=caller) for caller in (ALICE, BOB)] == [(200, b"1"), (200, b"2")]


def test_a_right_that_is_taken_away_is_missed_at_once() -> None:
    app, rules = guarding_cache(Backend(shown_through=("a",)), alice="a")
    ask(app, caller=ALICE)
    rules.replace(())
    assert ask(app, caller=ALICE) == (200, b"2")


def test_a_response_without_subjects_is_not_kept() -> None:
    app, _ = guarding_cache(Backend(), alice="a")
    assert [ask(app, caller=ALICE) for _ in range(2)] == [(200, b"1"), (200, b"2")]
