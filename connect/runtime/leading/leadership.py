"""Leader election: the worker that the group of `group.id` assigns the config topic to is the leader."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from connect.runtime.leading.candidacy import Candidacy
from connect.settings import ConnectSettings
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError, Fatal

log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.1
_PAUSE_SECONDS: Final = 1.0
_LEAVING_MS: Final = 2_000


class Leadership:
    """Takes part in the election in its own thread. The callbacks must return soon: the group waits for them."""

    def __init__(
        self,
        settings: ConnectSettings,
        *,
        worker_id: str,
        on_gained: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._on_gained = on_gained
        self._on_lost = on_lost
        self._stopping = threading.Event()
        self._resigning = threading.Event()
        self._leads = False
        self._thread = threading.Thread(target=self._run, name="leadership", daemon=True)

    def start(self) -> None:
        """Take part in the election from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the group, so that the others need not wait for the session timeout."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(10)
            try:
                kafka = replace(self._settings.kafka(), timeout_ms=_LEAVING_MS)
                Admin(kafka).remove_member(self._settings.group_id, self._worker_id)
            except ClientError as error:
                log.warning("this worker could not leave its group", extra={"error": str(error)})

    def resign(self) -> None:
        """Give up the lead and take part in the election again, after an error that only a new term clears up."""
        self._resigning.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._resigning.clear()
            try:
                self._campaign()
            except Fatal as error:
                extra = {"worker": self._worker_id, "error": str(error)}
                log.error(
                    "another worker with the same id is in the group: this one waits until it leaves", extra=extra
                )
                self._wait_until_absent()
            except ClientError as error:
                log.error("cannot join the group of workers", extra={"worker": self._worker_id, "error": str(error)})
                self._stopping.wait(_PAUSE_SECONDS)

    def _campaign(self) -> None:
        candidacy = Candidacy(
            self._settings.kafka(client_id=f"caudal-connect-{self._worker_id}"),
            group_id=self._settings.group_id,
            topic=self._settings.config_storage_topic,
            instance_id=self._worker_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms,
        )
        try:
            while not self._stopping.is_set() and not self._resigning.is_set():
                self._set_leads(candidacy.poll(_POLL_SECONDS))
        finally:
            self._set_leads(False)
            candidacy.close()

    def _wait_until_absent(self) -> None:
        """Two workers with the same id would replace each other for ever: wait until the later one is gone."""
        admin = Admin(self._settings.kafka())
        while not self._stopping.wait(self._settings.session_timeout_ms / 1000):
            try:
                members = admin.group(self._settings.group_id).members
            except ClientError as error:
                log.warning("the group of workers does not answer", extra={"error": str(error)})
                continue
            if all(member.instance_id != self._worker_id for member in members):
                return

    def _set_leads(self, leads: bool) -> None:
        if leads != self._leads:
            self._leads = leads
            (self._on_gained if leads else self._on_lost)()
