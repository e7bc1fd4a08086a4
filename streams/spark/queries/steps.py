"""The steps of a plan as views of a session: SELECTs, look-ups in tables, processors with state."""

from collections.abc import Mapping

from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession

from streams.model.plan import LookupStep, ProcessStep, SqlStep, Step
from streams.model.session import SESSION
from streams.model.types import quoted
from streams.spark.queries.lookups import look_up
from streams.spark.queries.spec import QuerySpec, cluster_of


def prepare(session: SparkSession, more: Mapping[str, str] | None = None) -> SparkSession:
    """Set a session as the SQL of plans needs it."""
    for key, value in {**SESSION, **(more or {})}.items():
        session.conf.set(key, value)
    return session


def add_view(frame: DataFrame, name: str) -> DataFrame:
    """Make a frame known under a name."""
    frame.createOrReplaceTempView(quoted(name))
    return frame


def last_view(
    session: SparkSession, spec: QuerySpec, inputs: Mapping[str, DataFrame], late: "Accumulator[int] | None"
) -> DataFrame:
    """Run the steps of a plan over its inputs; the view that is written."""
    views = {name: add_view(frame, name) for name, frame in inputs.items()}
    last = next(iter(views.values()))
    for step in spec.plan.steps:
        last = add_view(_run(session, step, views, spec, late), step.view)
        views[step.view] = last
    return last


def _run(
    session: SparkSession,
    step: Step,
    views: Mapping[str, DataFrame],
    spec: QuerySpec,
    late: "Accumulator[int] | None",
) -> DataFrame:
    match step:
        case SqlStep():
            register_functions(session, step.functions, spec.extensions)
            return session.sql(step.text)
        case LookupStep():
            return look_up(step, views[step.input], cluster_of(spec.cluster), spec.registry)
        case ProcessStep():
            from streams.spark.queries.processors.steps import apply

            return apply(step, views[step.input], mode=spec.plan.mode, extensions=spec.extensions, late=late)


def register_functions(session: SparkSession, names: tuple[str, ...], extensions: str) -> None:
    """Make Python functions known that a SELECT calls."""
    if names:
        from streams.spark.queries.functions import register

        register(session, names, extensions)
