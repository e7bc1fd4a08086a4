"""`make simulate`: run seeds in all processors, with progress, and say how to run a failing one again."""

import argparse
import gc
import os
import selectors
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import msgspec

from core_broker.handlers.table import BROKER_BY_KEY, CONTROLLER_BY_KEY
from core_broker.protocol.fields import Message, decoder, encoder
from tests.simulation import broken_rules, cluster, determinism

_TEXT_MAX = 1500


class Outcome(msgspec.Struct):
    """What became of one seed."""

    seed: int
    violation: str = ""
    digest: int = 0
    cpu_seconds: float = 0.0
    counts: dict[str, int] = {}
    history: list[str] = []


def run_seed(seed: int, *, verbose: bool = False, rule: str = "") -> Outcome:
    """Run one seed in this process, which must end afterwards."""
    warnings.simplefilter("ignore")  # what a crashed node was about to do is never awaited
    gc.disable()  # what a crashed node leaves behind must not be finalised, as if it had ended in an orderly way
    determinism.make_repeatable(seed)
    if rule:
        broken_rules.RULES[rule]()
    shared_memory = Path("/dev/shm")
    root = tempfile.mkdtemp(prefix="caudal-simulation-", dir=shared_memory if shared_memory.is_dir() else None)
    outcome = Outcome(seed)
    world = None
    try:
        world = cluster.World(seed, Path(root), verbose=verbose)
        cluster.simulate(world)
    except cluster.Violation as violation:
        outcome.violation = str(violation)
    except BaseException:  # noqa: BLE001 - a bug of the simulator is reported as well
        outcome.violation = traceback.format_exc()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if world is not None:
        outcome.digest = world.network.digest
        outcome.counts = {**world.counts, "requests": world.network.sent, "steps": world.loop.steps}
        outcome.history = world.history
    usage = getrusage(RUSAGE_SELF)
    outcome.cpu_seconds = usage.ru_utime + usage.ru_stime
    return outcome


def warm_up() -> None:
    """Compile the codecs that every seed needs, once for all of them."""
    for table in (BROKER_BY_KEY, CONTROLLER_BY_KEY):
        for api in table.values():
            for message in (api.request, api.response):
                version = min(api.last_version, message.VERSIONS[1])
                encoder(message, version)
                decoder(message, version)
    for message in Message.__subclasses__():
        if ".stored." in message.__module__ or message.__module__.endswith(".principals"):
            for version in range(message.VERSIONS[0], message.VERSIONS[1] + 1):
                encoder(message, version)
                decoder(message, version)


def main() -> int:
    """Run seeds; the exit code says whether all of them passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run one seed and print what happens in it")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="how many seeds run at once (default: all processors)"
    )
    parser.add_argument("--without", default="", help="switch a rule of the product off (see broken_rules.py)")
    parser.add_argument(
        "--broken-rules", action="store_true", help="switch off each rule in turn; each must be noticed"
    )
    parser.add_argument("--cpu-seconds", type=float, default=float("inf"), help="stop after this much work")
    parser.set_defaults(is_quiet=False)
    parser.add_argument("--until-failure", action="store_true", help="stop at the first failure")
    options = parser.parse_args()
    if options.seed is not None:
        outcome = run_seed(options.seed, verbose=True, rule=options.without)
        print(outcome.violation or "passed", f"\n{outcome.cpu_seconds:.2f} s, digest {outcome.digest}", outcome.counts)
        return 1 if outcome.violation else 0
    return find_broken_rules(options) if options.broken_rules else Runner(options).run()


def find_broken_rules(options: argparse.Namespace) -> int:
    """Switch off each rule in turn until a seed fails; the exit code says whether every one was noticed."""
    missed = 0
    for rule in [options.without] if options.without else broken_rules.RULES:
        options.without, options.until_failure, options.is_quiet = rule, True, True
        runner = Runner(options)
        runner.run()
        first = runner.failed[0] if runner.failed else None
        missed += first is None
        lines = "" if first is None else first.violation.strip().splitlines()
        found = f"seed {first.seed}: {lines[0][:110]}" if first else "NOT NOTICED"
        print(f"{rule:45} {runner.done:4} seeds {runner.cpu:6.1f} CPU s  {found}", flush=True)
    return 1 if missed else 0


class Runner:
    """Runs many seeds, each in a process of its own, and shows how far it is."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.failed: list[Outcome] = []
        self.done = 0
        self.cpu = 0.0
        self._counts: Counter[str] = Counter()
        self._started = time.monotonic()
        self._shown = 0.0

    def run(self) -> int:
        options = self._options
        seeds = iter(range(options.first, options.first + options.seeds))
        running: dict[int, int] = {}
        selector = selectors.DefaultSelector()
        warm_up()
        gc.collect()
        gc.freeze()
        while True:
            is_enough = self.cpu >= options.cpu_seconds or (options.until_failure and self.failed)
            while not is_enough and len(running) < options.workers and (seed := next(seeds, None)) is not None:
                reader, pid = _fork(seed, options.without)
                running[reader] = pid
                selector.register(reader, selectors.EVENT_READ, bytearray())
            if not running:
                break
            for key, _ in selector.select():
                data = os.read(key.fd, 1 << 20)
                key.data.extend(data)
                if not data:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    os.waitpid(running.pop(key.fd), 0)
                    self._take(bytes(key.data))
        if not options.is_quiet:
            self._show(is_last=True)
            for outcome in self.failed:
                print(f"failed: {self._command(outcome.seed)}  ({outcome.violation.strip().splitlines()[-1][:100]})")
        return 1 if self.failed or not self.done else 0

    def _take(self, data: bytes) -> None:
        outcome = msgspec.json.decode(data, type=Outcome) if data else Outcome(-1, "the process died")
        self.done += 1
        self.cpu += outcome.cpu_seconds
        self._counts.update(outcome.counts)
        if outcome.violation:
            self.failed.append(outcome)
        if self._options.is_quiet:
            return
        if outcome.violation:
            print(f"\nseed {outcome.seed} FAILED: {outcome.violation[:_TEXT_MAX]}")
            print(f"  again: {self._command(outcome.seed)}", flush=True)
        self._show()

    def _command(self, seed: int) -> str:
        """What runs a seed again."""
        without = f" --without {self._options.without}" if self._options.without else ""
        return f"python -m tests.simulation --seed {seed}{without}"

    def _show(self, *, is_last: bool = False) -> None:
        seconds = time.monotonic() - self._started
        if not is_last and seconds - self._shown < (0.5 if sys.stdout.isatty() else 10):
            return
        self._shown = seconds
        rate = self.done / max(seconds, 0.001)
        each = self.cpu / max(self.done, 1)
        text = (
            f"{self.done} of {self._options.seeds} seeds, {rate:.1f}/s, {each:.2f} CPU s each, "
            f"{self._counts['faults']:,} faults, {self._counts['acknowledged']:,} records acknowledged, "
            f"{self._counts['transactions']:,} transactions, {self._counts['requests']:,} frames, "
            f"{len(self.failed)} failed"
        )
        print(
            f"\r\033[K{text}" if sys.stdout.isatty() else text, end="\n" if is_last or not sys.stdout.isatty() else ""
        )
        sys.stdout.flush()


def _fork(seed: int, rule: str) -> tuple[int, int]:
    """Run a seed in a child; returns where its outcome can be read, and its pid."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return reader, pid
    try:
        outcome = run_seed(seed, rule=rule)
        outcome.history = []
        with os.fdopen(writer, "wb") as file:
            file.write(msgspec.json.encode(outcome))
    finally:
        os._exit(0)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # else the order of a set of strings differs from run to run
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main())
