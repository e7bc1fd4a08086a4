from deploy.doctor.finding import Context, Level
from deploy.doctor.services import platform, service


def test_platform_that_is_not_there_is_reported_with_the_command_that_starts_one(context: Context) -> None:
    (finding,) = platform(context)
    assert finding.level is Level.NOTE
    assert finding.found == f"none runs in {context.data}"
    assert finding.next_steps == ("start one:  caudal up",)
    assert list(service(context, name="broker")) == []
