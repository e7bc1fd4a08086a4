from deploy.launcher.supervisor import CALM_S, GIVEN_UP_DEATHS, Backoff


def test_pauses_double_up_to_half_a_minute() -> None:
    backoff = Backoff()
    pauses = [backoff.record_death(ready_for_s=0.0) for _ in range(12)]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0, 30.0]


def test_a_service_that_was_well_for_a_while_begins_anew() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.record_death(ready_for_s=0.0)
    assert backoff.record_death(ready_for_s=CALM_S) == 0.2
    assert backoff.deaths == 1


def test_a_service_that_is_only_ready_for_a_moment_is_not_well() -> None:
    backoff = Backoff()
    backoff.record_death(ready_for_s=0.0)
    assert backoff.record_death(ready_for_s=CALM_S / 2) == 0.4


def test_a_service_that_dies_again_and_again_counts_as_failed() -> None:
    backoff = Backoff()
    for _ in range(GIVEN_UP_DEATHS - 1):
        backoff.record_death(ready_for_s=0.0)
    assert not backoff.is_hopeless
    backoff.record_death(ready_for_s=0.0)
    assert backoff.is_hopeless


def test_thousands_of_deaths_are_counted_without_harm() -> None:
    backoff = Backoff()
    assert {backoff.record_death(ready_for_s=0.0) for _ in range(5_000)} >= {30.0}
