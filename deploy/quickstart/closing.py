"""The last words of a tour: what was seen, and what to do next."""

from deploy.quickstart import telling
from deploy.quickstart.places import EXAMPLES, Places, program, shown
from deploy.quickstart.steps import STEPS
from deploy.quickstart.tour import Tour


def tell_result(tour: Tour, *, seconds: float) -> None:
    """Say that all is right, and what was left out."""
    done = [step for step in STEPS if tour.spark_problem is None or not step.needs_spark]
    text = f"all {len(done)} steps done and checked in {seconds:.0f} s"
    if tour.spark_problem is not None:
        text = f"{len(done)} of {len(STEPS)} steps done and checked in {seconds:.0f} s; Spark was left out"
    telling.result(text)


def tell_next(tour: Tour, *, stays: bool) -> None:
    """What to do next: with this platform when it stays, else with one of one's own."""
    if stays:
        _tell_platform(tour.places)
    else:
        telling.section("Now on your own")
        telling.pairs(
            [
                ("a platform that stays", f"{program()} up"),
                ("and this tour on it", f"{program()} quickstart"),
            ],
            indent=telling.NEAR,
        )
    telling.section("Go on")
    telling.pairs(
        [("all of it by hand", shown(EXAMPLES / "README.md")), ("every command", f"{program()} --help")],
        indent=telling.NEAR,
    )
    telling.blank()


def _tell_platform(places: Places) -> None:
    telling.section("The platform keeps running")
    telling.pairs(
        [
            ("how it fares", places.caudal("status", "platform")),
            ("orders as they come", places.caudal("topic consume orders --follow", "cluster")),
            ("connectors", places.caudal("connector list", "connect")),
            ("tables of Spark", places.caudal("spark tables", "spark")),
            ("APIs to read and to try", f"{places.proxy}/docs  {places.connect}/docs"),
            ("stop it", places.caudal("down", "platform")),
        ],
        indent=telling.NEAR,
    )
    telling.section("In a notebook")
    telling.code(
        "from pyspark.sql import SparkSession",
        f'spark = SparkSession.builder.remote("sc://localhost:{places.spark_port}").getOrCreate()',
        'spark.table("orders").show()',
    )
