"""Scripts that Redis runs atomically, in Lua, by its own clock (microseconds since 1970).

Keys of owners: 1 the guard of the group, 2 the task, 3 the list of events. Keys of leaders: 1 the guard, 2 the leader,
3 the set of tasks, 4 the task.
The guard is {run, until}: a Redis that was restarted or emptied may have forgotten leases, so it grants none for the
duration of one lease. The first process that connects to such a Redis sets it.
The leader is the stamp of the last one that took over; a leader with a lower stamp was replaced and changes nothing.
The task is {plan, wanted, target} by the leader and {epoch, owner, until, ended, counters} by owners.
"""

from typing import Final

_CLOCK: Final = """
local function number(value) return string.format('%.0f', value) end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
"""

_GUARD: Final = """
local function is_cooling(lease)
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  if redis.call('HGET', KEYS[1], 'run') ~= run then
    redis.call('HSET', KEYS[1], 'run', run, 'until', number(now + lease))
  end
  return now < tonumber(redis.call('HGET', KEYS[1], 'until'))
end
"""

TOUCH: Final = f"""{_CLOCK}{_GUARD}
is_cooling(tonumber(ARGV[1]))
return 1
"""
"""Arguments: lease. Starts the waiting time if Redis has lost its data."""

CLAIM: Final = f"""{_CLOCK}{_GUARD}
local lease, epoch, generation, owner = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
if is_cooling(lease) then return {{'cooling'}} end
local task = redis.call('HMGET', KEYS[2], 'epoch', 'until', 'wanted', 'target', 'ended', 'plan')
if (task[1] or '0') ~= epoch then return {{'stale'}} end
if tonumber(task[2] or '0') > now then return {{'held'}} end
if task[3] ~= generation or task[4] == 'STOPPED' or not task[6] then return {{'unwanted'}} end
if task[5] == generation then return {{'ended'}} end
local next_epoch = number(math.max(tonumber(epoch) + 1, now))
redis.call('HSET', KEYS[2], 'epoch', next_epoch, 'owner', owner, 'until', number(now + lease))
redis.call('HDEL', KEYS[2], 'counters')
return {{'claimed', next_epoch, task[4], task[6]}}
"""
"""Arguments: lease, epoch of the message, generation, owner. Epochs follow the clock, so that they grow even when Redis
has lost its data."""

RENEW: Final = f"""{_CLOCK}{_GUARD}
local lease, epoch, generation, owner, counters = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
is_cooling(lease)
local task = redis.call('HMGET', KEYS[2], 'epoch', 'owner', 'until', 'wanted', 'target')
if not task[1] then return {{'forgotten'}} end
if task[1] ~= epoch or task[2] ~= owner or tonumber(task[3]) <= now then return {{'lost'}} end
redis.call('HSET', KEYS[2], 'until', number(now + lease))
if counters ~= '' then redis.call('HSET', KEYS[2], 'counters', counters) end
if task[4] ~= generation then return {{'held', 'STOPPED'}} end
return {{'held', task[5]}}
"""
"""Arguments: lease, epoch, generation, owner, counters."""

RELEASE: Final = """
local epoch, generation, owner, has_ended, event = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local task = redis.call('HMGET', KEYS[2], 'epoch', 'owner')
if task[1] ~= epoch or task[2] ~= owner then return 0 end
redis.call('HSET', KEYS[2], 'until', '0')
redis.call('HDEL', KEYS[2], 'owner', 'counters')
if has_ended == '1' then redis.call('HSET', KEYS[2], 'ended', generation) end
redis.call('LPUSH', KEYS[3], event)
redis.call('LTRIM', KEYS[3], 0, 999)
return 1
"""
"""Arguments: epoch, generation, owner, whether the task has ended on its own, the event for the leader."""

_LEADS: Final = """
local function leads(stamp)
  local stored = tonumber(redis.call('GET', KEYS[2]) or '0')
  if stored < stamp then redis.call('SET', KEYS[2], number(stamp)) end
  return stored <= stamp
end
"""

LEAD: Final = f"""{_CLOCK}
local stamp = number(math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, now))
redis.call('SET', KEYS[2], stamp)
return stamp
"""
"""No arguments. Returns the stamp of a new leader."""

WANT: Final = f"""{_CLOCK}{_LEADS}
if not leads(tonumber(ARGV[1])) then return 'replaced' end
redis.call('HSET', KEYS[4], 'plan', ARGV[3], 'wanted', ARGV[4], 'target', ARGV[5])
redis.call('SADD', KEYS[3], ARGV[2])
return 'done'
"""
"""Arguments: stamp, the task's name, plan, generation, target."""

SET_TARGET: Final = f"""{_CLOCK}{_LEADS}
if not leads(tonumber(ARGV[1])) then return 'replaced' end
redis.call('HSET', KEYS[4], 'target', ARGV[3])
return 'done'
"""
"""Arguments: stamp, the task's name, target."""

FORGET: Final = f"""{_CLOCK}{_GUARD}{_LEADS}
if not leads(tonumber(ARGV[1])) then return 'replaced' end
if is_cooling(tonumber(ARGV[3])) then return 'held' end
if tonumber(redis.call('HGET', KEYS[4], 'until') or '0') > now then return 'held' end
redis.call('DEL', KEYS[4])
redis.call('SREM', KEYS[3], ARGV[2])
return 'done'
"""
"""Arguments: stamp, the task's name, lease. A task that has an owner, or may have one, is not removed."""
