"""Keeps the services of a platform running: starts them in order, restarts those that die, stops them in reverse."""

import asyncio
import logging
import os
import signal
from contextlib import suppress
from itertools import groupby
from typing import Final

import msgspec

from core_broker.client.errors import ClientError
from core_broker.service.clock import Clock
from deploy.launcher import spark, state
from deploy.launcher.events import AllReady, Died, Emit, Event, Ready, SparkChecked, Starting, Stopped, Stopping
from deploy.launcher.log_files import LogFile
from deploy.launcher.plan import SPARK, Plan
from deploy.launcher.process import Exit, NotReady, ServiceProcess
from deploy.launcher.request import Refused
from deploy.security.users import create_registry_rules, create_users
from deploy.stack import REGISTRY, WITH_SPARK, Service, kind_of
from schema_registry.client.errors import ClientError as RegistryError

log = logging.getLogger(__name__)

_READY_TIMEOUT_S: Final = 120.0
_STOP_TIMEOUT_S: Final = 30.0
_TAIL_LINES: Final = 10
_WRONG_SETTINGS: Final = 2
"""The exit code of a service whose settings were refused."""
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 30.0
CALM_S: Final = 10.0
"""A service that was ready for this long has recovered."""
FIRST_START_TRIES: Final = 3
"""Deaths before a service was ready for the first time; more attempts would not help."""
GIVEN_UP_DEATHS: Final = 10
"""Deaths in a row after which a service counts as failed; it is still restarted, after the longest pause."""
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def supervise(plan: Plan, *, emit: Emit, clock: Clock) -> None:
    """Run the services of a plan until a signal stops them; raises `Refused` if one cannot start at all."""
    await Supervisor(plan, emit=emit, clock=clock).run()


class Backoff:
    """Counts the deaths of one service since it was last ready for a while."""

    def __init__(self) -> None:
        self.deaths = 0

    def record_death(self, *, ready_for_s: float) -> float:
        """Count a death after this time of being ready (0: never); returns the pause before the next start."""
        if ready_for_s >= CALM_S:
            self.deaths = 0
        self.deaths += 1
        return min(FIRST_PAUSE_S * 2.0 ** min(self.deaths - 1, 30), LONGEST_PAUSE_S)

    @property
    def is_hopeless(self) -> bool:
        """Whether it has died so often that a person should look at it."""
        return self.deaths >= GIVEN_UP_DEATHS


class SupervisedService:
    """One service: its current process and its state."""

    def __init__(self, service: Service, plan: Plan) -> None:
        self.definition = service
        self.name = service.name
        self.process: ServiceProcess | None = None
        self.is_ready = asyncio.Event()
        self.was_ready = False
        self.backoff = Backoff()
        self.log = LogFile(plan.log_of(service.name))
        self.state = state.ServiceState(
            state="starting",
            port=plan.ports[service.name],
            endpoint=plan.endpoint_of(service.name),
            metrics=f"{plan.watch_of(service.name)}/metrics",
            log=str(self.log.path),
        )


class Supervisor:
    """All services of a plan, from their start to their end."""

    def __init__(self, plan: Plan, *, emit: Emit, clock: Clock) -> None:
        self._plan = plan
        self._listener = emit
        self._clock = clock
        self._began = clock.monotonic()
        self._services = {service.name: SupervisedService(service, plan) for service in plan.services}
        self._stop = asyncio.Event()
        self._kills_at_once = False
        self._state = state.PlatformState(
            pid=os.getpid(),
            started_ms=clock.now_ms(),
            data=str(plan.data),
            state="starting",
            services={name: service.state for name, service in self._services.items()},
            spark=_spark_state(plan),
            elsewhere=dict(plan.elsewhere),
            client_config=str(plan.security.client_config) if plan.security else None,
            is_secure=plan.security is not None,
            controller_ports=plan.controller_ports,
        )
        self._has_users = asyncio.Event()

    async def run(self) -> None:
        """Run until a signal stops it; raises `Refused` if a service cannot start at all."""
        self._write()
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._handle_signal, number)
        try:
            await self._keep_all_running()
        finally:
            await self._stop_all()
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)

    # --- starting and restarting ---

    async def _keep_all_running(self) -> None:
        """Keep everything running until a signal comes or a first start has failed."""
        keeping = [asyncio.create_task(self._keep_running(service)) for service in self._services.values()]
        keeping.append(asyncio.create_task(self._create_users()))
        others = [asyncio.create_task(self._report_ready())]
        if self._plan.has_spark:
            others.append(asyncio.create_task(self._check_java()))
        stop = asyncio.create_task(self._stop.wait())
        try:
            done, _ = await asyncio.wait((*keeping, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*keeping, *others, stop):
                task.cancel()
            await asyncio.gather(*keeping, *others, stop, return_exceptions=True)
        for task in done - {stop}:
            task.result()  # raises: none of them returns before the stop

    async def _create_users(self) -> None:
        """Create the users of a secured platform once its brokers run, before services that log in are started."""
        if (security := self._plan.security) is not None:
            try:
                for name in self._plan.brokers:
                    await self._services[name].is_ready.wait()
                await asyncio.to_thread(create_users, security, bootstrap=self._plan.certificates_bootstrap)
                if REGISTRY.name in self._services:
                    await self._services[REGISTRY.name].is_ready.wait()
                    url = self._plan.endpoint_of(REGISTRY.name)
                    await asyncio.to_thread(create_registry_rules, security, url=url)
            except (ClientError, RegistryError, OSError) as error:
                log.error("users cannot be created", extra={"reason": str(error)})
                steps = [f"its passwords and certificates:  `{security.path!s}`"]
                raise Refused(f"the users of the platform cannot be created: {error}", steps) from error
        self._has_users.set()
        await self._stop.wait()

    async def _report_ready(self) -> None:
        for service in self._services.values():
            await service.is_ready.wait()
        await self._has_users.wait()
        self._change_platform("running")
        after_s = self._clock.monotonic() - self._began
        log.info("platform ready", extra={"seconds": round(after_s, 2)})
        self._emit(AllReady(after_s=after_s))

    async def _check_java(self) -> None:
        missing = await asyncio.to_thread(spark.missing_java)
        if missing and self._state.spark is not None:
            self._state = msgspec.structs.replace(
                self._state, spark=msgspec.structs.replace(self._state.spark, missing=missing)
            )
            self._write()
        self._emit(SparkChecked(missing=missing))

    async def _keep_running(self, service: SupervisedService) -> None:
        name = service.name
        service.log.begin()
        self._emit(Starting(service=name, endpoint=service.state.endpoint))
        while True:
            for need in self._plan.needs_of(service.definition, is_restart=service.was_ready):
                await self._services[need].is_ready.wait()
            if service.definition.needs:
                await self._has_users.wait()
            how, ready_for_s = await self._run_once(service)
            service.is_ready.clear()
            service.process = None
            pause_s = service.backoff.record_death(ready_for_s=ready_for_s)
            self._check_first_start(service, how)
            condition: state.ServiceCondition = "failed" if service.backoff.is_hopeless else "restarting"
            self._change(service, state=condition, pid=None, restarts=service.state.restarts + 1)
            log.warning("service died", extra={"service": name, "how": str(how), "restart_in_s": pause_s})
            tail = tuple(service.log.last_lines(_TAIL_LINES))
            service.log.note(f"{name} {how}; starting it again in {pause_s:g} s", now_ms=self._clock.now_ms())
            self._emit(Died(service=name, how=str(how), pause_s=pause_s, tail=tail, log=str(service.log.path)))
            await asyncio.sleep(pause_s)

    async def _run_once(self, service: SupervisedService) -> tuple[Exit | NotReady, float]:
        """Start a process and wait until it ends; returns how it ended, and how long it was ready."""
        name, began, security = service.name, self._clock.monotonic(), self._plan.security
        try:
            tls = security.launcher_tls() if security else None
            process = await ServiceProcess.start(
                kind_of(name).name,
                self._plan.settings_of(name),
                service.log,
                file=security.secrets_file(name) if security else None,
            )
        except NotReady as error:
            return error, 0.0
        except OSError as error:  # a missing file must not end the other services
            return NotReady(f"could not be started: the certificate of the launcher cannot be used: {error}"), 0.0
        service.process = process
        log.info("service started", extra={"service": name, "pid": process.pid})
        service.log.note(f"{name} started  pid={process.pid}", now_ms=self._clock.now_ms())
        self._change(service, pid=process.pid, started_ms=self._clock.now_ms())
        try:
            ended = await process.until_ready(self._plan.watch_of(name), timeout_s=_READY_TIMEOUT_S, tls=tls)
        except NotReady as error:
            process.kill()
            await process.until_end()
            return error, 0.0
        if ended is not None:
            return ended, 0.0
        ready_since = self._clock.monotonic()
        after_s, restarts = ready_since - began, service.state.restarts
        service.was_ready = True
        self._change(service, state="ready", ready_after_s=round(after_s, 3))
        service.is_ready.set()
        log.info("service ready", extra={"service": name, "seconds": round(after_s, 2), "restarts": restarts})
        self._emit(Ready(service=name, endpoint=service.state.endpoint, after_s=after_s, restarts=restarts))
        return await process.until_end(), self._clock.monotonic() - ready_since

    def _check_first_start(self, service: SupervisedService, how: Exit | NotReady) -> None:
        """Give up on a service that was never ready: the user who started it is still watching."""
        if service.was_ready:
            return
        is_refused = how == Exit(_WRONG_SETTINGS)
        if not is_refused and service.backoff.deaths < FIRST_START_TRIES:
            return
        name = service.name
        text = (
            f"{name} refused its settings"
            if is_refused
            else f"{name} did not start in {FIRST_START_TRIES} tries: {how}"
        )
        steps = [f"its whole log:  `{service.log.path!s}`"]
        if is_refused:
            steps.insert(0, f"its settings, with their meaning:  {service.definition.settings_page}")
        self._change(service, state="failed", pid=None)
        log.error("service does not start", extra={"service": name, "how": str(how)})
        raise Refused(text, steps, tail=service.log.last_lines(_TAIL_LINES))

    # --- stopping ---

    async def _stop_all(self) -> None:
        """Stop the services, the last one first; Spark after those that use it.

        Brokers stop together: one after the other, each would wait until the others have taken over its partitions.
        """
        self._change_platform("stopping")
        using = [service.name for service in self._plan.services if service.name in WITH_SPARK]
        for kind, services in groupby(reversed(self._services.values()), key=lambda service: kind_of(service.name)):
            await asyncio.gather(*map(self._stop_service, services))
            if using[:1] == [kind.name]:
                await self._stop_spark()
        log.info("platform stopped")

    async def _stop_service(self, service: SupervisedService) -> None:
        if (process := service.process) is not None:
            began = self._clock.monotonic()
            if self._kills_at_once:
                process.kill()
            ended_itself = await process.stop(timeout_s=_STOP_TIMEOUT_S)
            service.process = None
            self._change(service, state="stopped", pid=None)
            self._report_stopped(service.name, began, was_killed=self._kills_at_once or not ended_itself)
        service.log.close()

    async def _stop_spark(self) -> None:
        began = self._clock.monotonic()
        if self._kills_at_once:
            await asyncio.to_thread(spark.kill_engine, self._plan.spark)
            return
        ended_itself = await asyncio.to_thread(spark.end_engine, self._plan.spark, timeout_s=_STOP_TIMEOUT_S)
        if ended_itself is not None:
            self._report_stopped(SPARK, began, was_killed=not ended_itself)

    def _report_stopped(self, name: str, began: float, *, was_killed: bool) -> None:
        after_s = self._clock.monotonic() - began
        message = "service killed, it did not stop in time" if was_killed else "service stopped"
        log.info(message, extra={"service": name, "seconds": round(after_s, 2)})
        self._emit(Stopped(service=name, after_s=after_s, was_killed=was_killed))

    def _handle_signal(self, number: signal.Signals) -> None:
        """Stop in order on the first signal, at once on the second."""
        if self._stop.is_set():
            log.warning("killing everything", extra={"signal": number.name})
            self._kills_at_once = True
            for service in self._services.values():
                if service.process is not None:
                    service.process.kill()
            if self._plan.has_spark:
                spark.kill_engine(self._plan.spark)
            return
        log.info("stopping", extra={"signal": number.name})
        self._stop.set()
        self._emit(Stopping(reason=number.name))

    # --- events and state ---

    def _emit(self, event: Event) -> None:
        """Send an event; a closed terminal or pipe must not end the platform."""
        with suppress(OSError):
            self._listener(event)

    def _change(self, service: SupervisedService, **changes: object) -> None:
        service.state = msgspec.structs.replace(service.state, **changes)
        services = {name: one.state for name, one in self._services.items()}
        self._state = msgspec.structs.replace(self._state, services=services)
        self._write()

    def _change_platform(self, condition: state.PlatformCondition) -> None:
        self._state = msgspec.structs.replace(self._state, state=condition)
        self._write()

    def _write(self) -> None:
        try:
            state.write(self._state)
        except OSError as error:
            # A full disk must not stop services that still work.
            log.warning("platform.json cannot be written", extra={"error": str(error)})


def _spark_state(plan: Plan) -> state.SparkState | None:
    if not plan.has_spark:
        return None
    name = next(service.name for service in plan.services if service.name in WITH_SPARK)
    settings = {key: value for key, value in plan.settings_of(name).items() if key.startswith("spark.")}
    return state.SparkState(data_dir=str(plan.spark), connect_port=plan.ports[SPARK], settings=settings)
