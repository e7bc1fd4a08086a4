"""The cache: bounded by weight, the oldest goes."""

from schema_registry.registry.lru_cache import LruCache


def test_what_was_used_last_stays() -> None:
    cache: LruCache[str, int] = LruCache(weight_max=3)
    for number, key in enumerate("abc"):
        cache.put(key, number, weight=1)
    assert cache.get("a") == 0
    cache.put("d", 3, weight=1)
    assert [cache.get(key) for key in "abcd"] == [0, None, 2, 3]


def test_a_heavy_value_takes_the_place_of_several() -> None:
    cache: LruCache[str, int] = LruCache(weight_max=3)
    for number, key in enumerate("abc"):
        cache.put(key, number, weight=1)
    cache.put("d", 3, weight=2)
    assert [cache.get(key) for key in "abcd"] == [None, None, 2, 3]


def test_what_is_too_heavy_is_not_kept() -> None:
    cache: LruCache[str, int] = LruCache(weight_max=3)
    cache.put("a", 0, weight=3)
    cache.put("b", 1, weight=4)
    assert (cache.get("a"), cache.get("b")) == (0, None)


def test_a_value_that_is_put_again_weighs_once() -> None:
    cache: LruCache[str, int] = LruCache(weight_max=3)
    cache.put("a", 0, weight=1)
    for number in range(5):
        cache.put("b", number, weight=2)
    assert (cache.get("a"), cache.get("b")) == (0, 4)
