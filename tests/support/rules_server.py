"""An HTTP service that has nothing but access rules, which it keeps in memory."""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from core_broker.web_access import rules_api
from core_broker.web_access.documented import add_access
from core_broker.web_access.rules import ResourceType, Rule, Rules
from core_broker.web_access.settings import RuleSettings
from tests.support.admin import eventually


class MemoryRules:
    """A store that forgets everything with the process."""

    def __init__(self) -> None:
        self.rules: dict[Rule, None] = {}

    def version(self) -> object:
        return len(self.rules)

    def read(self) -> Sequence[Rule]:
        return list(self.rules)

    def add(self, rules: Sequence[Rule]) -> None:
        self.rules.update(dict.fromkeys(rules))

    def remove(self, rules: Sequence[Rule]) -> None:
        for rule in rules:
            self.rules.pop(rule, None)


@contextmanager
def rules_server(kinds: Collection[ResourceType], whole: ResourceType) -> Iterator[str]:
    """The URL of one, which runs as long as the block."""
    # Rules are enforced, but its callers, who need not log in, may do everything.
    settings = RuleSettings(authentication_method=("BASIC",), super_users=("User:ANONYMOUS",))
    app = FastAPI()
    app.include_router(rules_api.router(Rules(settings), MemoryRules(), resource_types=kinds, whole=whole))
    add_access(app, settings)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    eventually(lambda: server.started, bool)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)
