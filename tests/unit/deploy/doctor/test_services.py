from deploy.doctor.finding import Level, Surroundings
from deploy.doctor.services import platform, service


def test_platform_that_is_not_there_is_told_with_the_command_that_starts_one(surroundings: Surroundings) -> None:
    (finding,) = platform(surroundings)
    assert finding.level is Level.NOTE
    assert finding.found == f"none runs in {surroundings.data}"
    assert finding.next_steps == ("start one:  caudal up",)
    assert list(service(surroundings, name="broker")) == []
