"""What the embedded Spark runs on: Java, and variables of other Sparks that change it."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from deploy.doctor.finding import Context, Finding, note, ok, problem, warning

_UNSET: Final = "unset {name} for the shell that starts the platform"
_JAVA_OPTIONS: Final = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")


def java(context: Context) -> Iterator[Finding]:
    """Is there a Java that Spark runs on?"""
    from streams.errors import JavaMissing
    from streams.spark.engine.class_archive import archive_file
    from streams.spark.java import find_java

    try:
        found = find_java(context.environment)
    except JavaMissing as error:
        reason, _, advice = str(error).partition("\n")
        steps = [" ".join(line.split()) for line in advice.splitlines() if line.strip()]
        yield problem("Java", f"{reason} Everything but Spark works without it.", *steps)
    else:
        is_prepared = archive_file(context.environment).is_file()
        start = "Spark's classes are archived" if is_prepared else "Spark starts faster after  caudal spark prepare"
        yield ok("Java", f"{found.version} at {found.path}; {start}")


def spark_variables(context: Context) -> Iterator[Finding]:
    """Do variables of another Spark affect ours?"""
    environment = context.environment
    found: list[Finding] = []
    if home := environment.get("SPARK_HOME"):
        found.append(_spark_home(Path(home)))
    if environment.get("SPARK_CONNECT_MODE_ENABLED") or environment.get("SPARK_API_MODE", "").lower() == "connect":
        name = "SPARK_CONNECT_MODE_ENABLED" if environment.get("SPARK_CONNECT_MODE_ENABLED") else "SPARK_API_MODE"
        reason = "is set: the embedded Spark would connect to another Spark instead of being one"
        found.append(problem(name, reason, _UNSET.format(name=name)))
    if folder := environment.get("SPARK_CONF_DIR"):
        found.append(warning("SPARK_CONF_DIR", f"{folder}: its spark-defaults.conf changes the embedded Spark, too"))
    if python := environment.get("PYSPARK_PYTHON"):
        reason = f"{python}: used only by workers of a cluster; the embedded Spark uses our own Python"
        found.append(note("PYSPARK_PYTHON", reason))
    given = [(name, environment[name]) for name in _JAVA_OPTIONS if environment.get(name)]
    found += [note(name, f"{options}: every Java uses these, Spark's too") for name, options in given]
    yield from found or [ok("Spark's variables", "none that changes the embedded Spark")]


def _spark_home(home: Path) -> Finding:
    """A folder of another Spark, which would be used instead of ours."""
    unset = _UNSET.format(name="SPARK_HOME")
    jar = next(iter(sorted(home.glob("jars/spark-core_*.jar"))), None)
    if jar is None:
        return problem("SPARK_HOME", f"{home} has no Spark, but the embedded one would be started from there", unset)
    found = re.search(r"-(\d[\w.]*?)(?:-SNAPSHOT)?\.jar$", jar.name)
    theirs = found[1] if found else "unknown"
    try:
        ours = version("pyspark")
    except PackageNotFoundError:
        return warning("SPARK_HOME", f"{home} is Spark {theirs}, and pyspark is not installed", unset)
    if theirs == ours:
        return ok("SPARK_HOME", f"{home} is Spark {theirs}, the same as ours")
    return problem("SPARK_HOME", f"{home} is Spark {theirs}, but our pyspark is {ours}: they must be the same", unset)
