from core_broker.service.clock import ManualClock
from schema_registry.client.cache import BoundedCache


def test_what_came_first_goes_first() -> None:
    cache: BoundedCache[int, str] = BoundedCache(2, clock=ManualClock())
    for number in (1, 2, 3):
        cache.put(number, str(number))
    assert [cache.get(number) for number in (1, 2, 3)] == [None, "2", "3"]
    assert len(cache) == 2


def test_putting_again_makes_an_entry_young() -> None:
    cache: BoundedCache[int, str] = BoundedCache(2, clock=ManualClock())
    for number in (1, 2, 1, 3):
        cache.put(number, str(number))
    assert [cache.get(number) for number in (1, 2, 3)] == ["1", None, "3"]


def test_entries_are_believed_for_as_long_as_was_said() -> None:
    clock = ManualClock()
    cache: BoundedCache[int, str] = BoundedCache(2, clock=clock, ttl_seconds=5)
    cache.put(1, "one")
    clock.advance(4_999)
    assert cache.get(1) == "one"
    clock.advance(1)
    assert cache.get(1) is None


def test_a_lifetime_of_zero_remembers_nothing() -> None:
    cache: BoundedCache[int, str] = BoundedCache(2, clock=ManualClock(), ttl_seconds=0)
    assert cache.put(1, "one") == "one"
    assert cache.get(1) is None


def test_what_is_wrong_can_be_forgotten() -> None:
    cache: BoundedCache[int, str] = BoundedCache(9, clock=ManualClock())
    for number in (1, 2, 3):
        cache.put(number, "")
    cache.remove(lambda key: key != 2)
    assert [cache.get(number) for number in (1, 2, 3)] == [None, "", None]
