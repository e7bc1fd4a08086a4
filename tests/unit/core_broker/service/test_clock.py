from core_broker.service.clock import Clock, ManualClock, SystemClock


def test_manual_clock_moves_only_by_hand() -> None:
    clock = ManualClock(now_ms=1_000)
    assert (clock.now_ms(), clock.monotonic()) == (1_000, 0.0)
    clock.advance(1_500)
    assert (clock.now_ms(), clock.monotonic()) == (2_500, 1.5)


def test_wall_clock_may_jump_back_while_monotonic_time_stays() -> None:
    clock = ManualClock(now_ms=1_000)
    clock.jump(-400)
    assert (clock.now_ms(), clock.monotonic()) == (600, 0.0)


def test_system_clock_counts_milliseconds_since_1970() -> None:
    clock: Clock = SystemClock()
    assert clock.now_ms() > 1_700_000_000_000
    assert clock.monotonic() <= clock.monotonic()
