"""The Lua scripts of the sessions of older clients in Redis, and of the mail between workers.

What holds for all scripts is told beside those of the claims.
"""

from bespeak.state.stores.redis_claim_scripts import COMMON
from bespeak.state.stores.session_store import WORKER_LEASE

# Sessions. `s:SESSION` is a session, `unused` and `used` hold them by the time of their last use, `sholder` has the holder of each,
# `sheld` counts those of each holder. `r:SESSION` has the worker and the request for each request under way, `q:SESSION` the worker
# for each open question, `a:SESSION` the answer if it has come. `rw:WORKER` and `qw:WORKER` list the same requests and questions by
# worker. `w:WORKER` expires unless the worker gives signs of life, `workers` lists them, `m:WORKER` is the mail for one. Where two
# names stand together, a line feed separates them.

_SESSIONS = (
    COMMON
    + f"local LEASE = {round(WORKER_LEASE * 1000)}\n"
    + """
local function split(pair)
  local at = string.find(pair, '\\n', 1, true)
  return string.sub(pair, 1, at - 1), string.sub(pair, at + 1)
end
local function alive(worker) return redis.call('EXISTS', P .. 'w:' .. worker) == 1 end
local function workers_of(session, request)
  local found, seen = {}, {}
  for _, member in ipairs(redis.call('SMEMBERS', P .. 'r:' .. session)) do
    local worker, one = split(member)
    if not seen[worker] and (not request or one == request) and alive(worker) then
      seen[worker] = true
      found[#found + 1] = worker
    end
  end
  return found
end
local function present(worker)
  -- What a worker does is a sign of life, too: Redis may have been restarted without its data.
  if not alive(worker) then
    redis.call('SET', P .. 'w:' .. worker, '0', 'PX', LEASE)
    redis.call('SADD', P .. 'workers', worker)
  end
end
local function busy(session) return #workers_of(session) > 0 end
local function keep_totals()
  for _, name in ipairs({'unused', 'used', 'sholder', 'sheld'}) do redis.call('EXPIRE', P .. name, 2 * WEEK) end
end
local function close_question(session, question)
  local worker = redis.call('HGET', P .. 'q:' .. session, question)
  if worker then
    redis.call('SREM', P .. 'qw:' .. worker, session .. '\\n' .. question)
    redis.call('HDEL', P .. 'q:' .. session, question)
    redis.call('HDEL', P .. 'a:' .. session, question)
  end
end
local function delete(session)
  for _, question in ipairs(redis.call('HKEYS', P .. 'q:' .. session)) do close_question(session, question) end
  redis.call('DEL', P .. 's:' .. session, P .. 'r:' .. session)
  redis.call('ZREM', P .. 'unused', session)
  redis.call('ZREM', P .. 'used', session)
  local holder = redis.call('HGET', P .. 'sholder', session)
  if holder then
    redis.call('HDEL', P .. 'sholder', session)
    if redis.call('HINCRBY', P .. 'sheld', holder, -1) <= 0 then redis.call('HDEL', P .. 'sheld', holder) end
  end
end
local function touch(session, ms)
  if redis.call('EXISTS', P .. 's:' .. session) == 1 then
    redis.call('ZREM', P .. 'unused', session)
    redis.call('ZADD', P .. 'used', ms, session)
    redis.call('HSET', P .. 's:' .. session, 'used', '1', 'last_used', ms)
    redis.call('EXPIRE', P .. 's:' .. session, WEEK)
    keep_totals()
  end
end
local function find_idle(set, before, most)
  local found, seen = {}, 0
  while #found < most do
    local some = redis.call('ZRANGEBYSCORE', P .. set, '-inf', before, 'LIMIT', seen, 100)
    for _, session in ipairs(some) do
      if #found < most and not busy(session) then found[#found + 1] = session end
    end
    if #some < 100 then break end
    seen = seen + 100
  end
  return found
end
local function end_idle(idle_ms)
  local before = '(' .. string.format('%.0f', now_ms() - tonumber(idle_ms))
  for _, set in ipairs({'unused', 'used'}) do
    for _, session in ipairs(find_idle(set, before, 1000)) do delete(session) end
  end
end
local function post(worker, mail)
  redis.call('RPUSH', P .. 'm:' .. worker, mail)
  redis.call('EXPIRE', P .. 'm:' .. worker, 60)
end
local function post_answer(worker, session, question)
  -- Also posts it again: it is lost when the connection breaks on which the worker receives it.
  local mail = redis.call('HGET', P .. 'a:' .. session, question)
  if mail and not redis.call('LPOS', P .. 'm:' .. worker, mail) then post(worker, mail) end
end
"""
)

BEAT = (
    _SESSIONS
    + """
local worker, listening = unpack(ARGV)
redis.call('EXPIRE', P .. 'm:' .. worker, 60)
redis.call('SET', P .. 'w:' .. worker, listening, 'PX', LEASE)
redis.call('SADD', P .. 'workers', worker)
redis.call('EXPIRE', P .. 'workers', WEEK)
return 1
"""
)

RETAIN = (
    _SESSIONS
    + """
local worker, count = ARGV[1], tonumber(ARGV[2])
local known = {requests = {}, questions = {}}
for index = 3, 2 + count do known.requests[ARGV[index]] = true end
for index = 3 + count, #ARGV do known.questions[ARGV[index]] = true end
for _, pair in ipairs(redis.call('SMEMBERS', P .. 'rw:' .. worker)) do
  if not known.requests[pair] then
    local session, request = split(pair)
    redis.call('SREM', P .. 'rw:' .. worker, pair)
    redis.call('SREM', P .. 'r:' .. session, worker .. '\\n' .. request)
  end
end
for _, pair in ipairs(redis.call('SMEMBERS', P .. 'qw:' .. worker)) do
  local session, question = split(pair)
  if known.questions[pair] then post_answer(worker, session, question) else close_question(session, question) end
end
return 1
"""
)

LEAVE = (
    _SESSIONS
    + """
local worker = ARGV[1]
for _, member in ipairs(redis.call('SMEMBERS', P .. 'rw:' .. worker)) do
  local session, request = split(member)
  redis.call('SREM', P .. 'r:' .. session, worker .. '\\n' .. request)
end
for _, member in ipairs(redis.call('SMEMBERS', P .. 'qw:' .. worker)) do
  local session, question = split(member)
  if redis.call('HGET', P .. 'q:' .. session, question) == worker then close_question(session, question) end
end
for _, name in ipairs({'w:', 'm:', 'rw:', 'qw:'}) do redis.call('DEL', P .. name .. worker) end
redis.call('SREM', P .. 'workers', worker)
return 1
"""
)

ADD_SESSION = (
    _SESSIONS
    + """
local session, record, holder, most, idle, recent, pressure, share = unpack(ARGV)
if redis.call('EXISTS', P .. 's:' .. session) == 1 then return {'ok'} end
if idle ~= '' then end_idle(idle) end
local ms = now_ms()
if most ~= '' then
  local count = redis.call('ZCARD', P .. 'unused') + redis.call('ZCARD', P .. 'used')
  local held = holder ~= '' and tonumber(redis.call('HGET', P .. 'sheld', holder) or '0') or 0
  most = tonumber(most)
  if count > math.floor(most / pressure) and held >= math.max(1, math.floor(most / share)) then
    return {'share', tostring(held)}
  end
  if count >= most then
    local victim = find_idle('unused', '+inf', 1)[1] or find_idle('used', string.format('%.0f', ms - tonumber(recent)), 1)[1]
    if not victim then return {'full'} end
    delete(victim)
  end
end
redis.call('HSET', P .. 's:' .. session, 'record', record, 'version', '1', 'used', '', 'last_used', ms)
redis.call('EXPIRE', P .. 's:' .. session, WEEK)
redis.call('ZADD', P .. 'unused', ms, session)
if holder ~= '' then
  redis.call('HSET', P .. 'sholder', session, holder)
  redis.call('HINCRBY', P .. 'sheld', holder, 1)
end
keep_totals()
return {'ok'}
"""
)

USE_SESSION = (
    _SESSIONS
    + """
local session, worker, used, idle = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local s = redis.call('HMGET', P .. 's:' .. session, 'record', 'version', 'used', 'last_used')
if not s[1] then return false end
local ms, last = now_ms(), tonumber(s[4])
if idle ~= '' and last + tonumber(idle) < ms and not busy(session) then
  delete(session)
  return false
end
local step = idle ~= '' and tonumber(idle) / 10 or 60000
if used == '1' and (s[3] == '' or last + step < ms) then touch(session, ms) end
for index = 5, #ARGV do
  redis.call('SADD', P .. 'r:' .. session, worker .. '\\n' .. ARGV[index])
  redis.call('SADD', P .. 'rw:' .. worker, session .. '\\n' .. ARGV[index])
end
if #ARGV > 4 then
  present(worker)
  redis.call('EXPIRE', P .. 'r:' .. session, WEEK)
  redis.call('EXPIRE', P .. 'rw:' .. worker, WEEK)
end
return {s[1], s[2]}
"""
)

END_REQUESTS = (
    _SESSIONS
    + """
local session, worker = ARGV[1], ARGV[2]
for index = 3, #ARGV do
  redis.call('SREM', P .. 'r:' .. session, worker .. '\\n' .. ARGV[index])
  redis.call('SREM', P .. 'rw:' .. worker, session .. '\\n' .. ARGV[index])
end
touch(session, now_ms())
return 1
"""
)

SAVE_SESSION = (
    _SESSIONS
    + """
local session, record, version = unpack(ARGV)
local before = redis.call('HMGET', P .. 's:' .. session, 'version', 'record')
if before[2] == record then return 1 end
if before[1] ~= version then return 0 end
redis.call('HSET', P .. 's:' .. session, 'record', record, 'version', tonumber(version) + 1)
return 1
"""
)

END_SESSION = (
    _SESSIONS
    + """
local workers = workers_of(ARGV[1])
delete(ARGV[1])
return workers
"""
)

END_IDLE = (
    _SESSIONS
    + """
end_idle(ARGV[1])
return 1
"""
)

WORKERS_OF = (
    _SESSIONS
    + """
return workers_of(ARGV[1], ARGV[2])
"""
)

OPEN_QUESTION = (
    _SESSIONS
    + """
local session, question, worker = unpack(ARGV)
present(worker)
close_question(session, question)
redis.call('HSET', P .. 'q:' .. session, question, worker)
redis.call('SADD', P .. 'qw:' .. worker, session .. '\\n' .. question)
redis.call('EXPIRE', P .. 'q:' .. session, WEEK)
redis.call('EXPIRE', P .. 'qw:' .. worker, WEEK)
return 1
"""
)

CLOSE_QUESTION = (
    _SESSIONS
    + """
close_question(ARGV[1], ARGV[2])
return 1
"""
)

ANSWER_QUESTION = (
    _SESSIONS
    + """
local session, question, mail = unpack(ARGV)
local worker = redis.call('HGET', P .. 'q:' .. session, question)
if not worker then return 'unknown' end
if not alive(worker) then return 'worker gone' end
redis.call('HSETNX', P .. 'a:' .. session, question, mail)
redis.call('EXPIRE', P .. 'a:' .. session, WEEK)
post_answer(worker, session, question)
return 'sent'
"""
)

SEND_TO_LISTENERS = (
    _SESSIONS
    + """
local sender, mail, most = unpack(ARGV)
for _, worker in ipairs(redis.call('SMEMBERS', P .. 'workers')) do
  local listening = redis.call('GET', P .. 'w:' .. worker)
  if not listening then
    redis.call('SREM', P .. 'workers', worker)
  elseif worker ~= sender and listening == '1' and redis.call('LLEN', P .. 'm:' .. worker) < tonumber(most) then
    post(worker, mail)
  end
end
return 1
"""
)

SEND = (
    _SESSIONS
    + """
for index = 3, #ARGV do
  if redis.call('LLEN', P .. 'm:' .. ARGV[index]) < tonumber(ARGV[2]) then post(ARGV[index], ARGV[1]) end
end
return 1
"""
)
