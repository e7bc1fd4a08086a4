"""The last words of a tour: what was seen, and what to do next."""

from deploy.quickstart import screen
from deploy.quickstart.places import EXAMPLES, Places, program, shown
from deploy.quickstart.steps import STEPS
from deploy.quickstart.tour import Tour


def show_result(tour: Tour, *, seconds: float) -> None:
    """Say that all is right, and what was left out."""
    done = [step for step in STEPS if tour.spark_problem is None or not step.needs_spark]
    text = f"all {len(done)} steps done and checked in {seconds:.0f} s"
    if tour.spark_problem is not None:
        text = f"{len(done)} of {len(STEPS)} steps done and checked in {seconds:.0f} s; Spark was left out"
    screen.result(text)


def show_next(tour: Tour, *, stays: bool) -> None:
    """What to do next: with this platform when it stays, else with one of one's own."""
    if stays:
        _show_platform(tour.places)
    else:
        screen.section("Next")
        screen.pairs(
            [
                ("start a platform", f"{program()} up"),
                ("take this tour on it", f"{program()} quickstart"),
            ],
            indent=screen.NEAR,
        )
    screen.section("Read on")
    screen.pairs(
        [("all of it by hand", shown(EXAMPLES / "README.md")), ("every command", f"{program()} --help")],
        indent=screen.NEAR,
    )
    screen.blank()


def _show_platform(places: Places) -> None:
    screen.section("The platform keeps running")
    screen.pairs(
        [
            ("its state", places.caudal("status", "platform")),
            ("orders as they come", places.caudal("topic consume orders --follow", "cluster")),
            ("connectors", places.caudal("connector list", "connect")),
            ("tables of Spark", places.caudal("spark tables", "spark")),
            ("APIs to read and to try", f"{places.proxy}/docs  {places.connect}/docs"),
            ("stop it", places.caudal("down", "platform")),
        ],
        indent=screen.NEAR,
    )
    screen.section("In a notebook")
    screen.code(
        "from pyspark.sql import SparkSession",
        f'spark = SparkSession.builder.remote("sc://localhost:{places.spark_port}").getOrCreate()',
        'spark.table("orders").show()',
    )
