"""The Lua scripts of the Redis store. Redis runs each of them as one step, and its clock measures the leases.

Every script gets the prefix of the server's keys. Numbers are passed as text and kept as they are, because Lua would round them.
When Redis has no memory left, it refuses a script if its first write could add something. Thus a script that makes room, or keeps
something alive, begins with a write that cannot.
"""

from bespeak.state.stores.session_store import WORKER_LEASE

_COMMON = """
local P = KEYS[1]
local WEEK = 604800
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
"""

# Claims. `c:CALL` is a claim, `due` holds all calls by the end of their time, `results` those with a result by age,
# `held` counts the claims of each holder, `bytes` the bytes of all results, `dropped` is the horizon.

_CLAIMS = (
    _COMMON
    + """
local function claim_key(call) return P .. 'c:' .. call end
local function there(call)
  local c = redis.call('HMGET', claim_key(call), 'answers', 'request', 'owner', 'lease', 'done', 'result')
  if not c[1] then return nil end
  return {'there', c[1], c[2], c[3], string.format('%.3f', (tonumber(c[4]) - now_ms()) / 1000), c[5] or '', c[6] or false}
end
local function too_early(now, difference)
  local claimed = redis.call('HGET', P .. 'dropped', 'claimed')
  return claimed and tonumber(now) <= tonumber(claimed) + tonumber(difference)
end
local function forgotten(issued, deadline, difference)
  local h = redis.call('HMGET', P .. 'dropped', 'born', 'deadline')
  return too_early(issued, difference)
    or (h[1] and tonumber(issued) <= tonumber(h[1]))
    or (h[2] and tonumber(deadline) <= tonumber(h[2]))
end
local function move(field, value)
  local before = redis.call('HGET', P .. 'dropped', field)
  if not before or tonumber(before) < tonumber(value) then redis.call('HSET', P .. 'dropped', field, value) end
end
local function keep_claim(call, claimed, kept)
  redis.call('EXPIRE', claim_key(call), math.ceil(math.max(0, tonumber(kept) - tonumber(claimed))) + 3 * WEEK)
end
local function keep_totals()
  for _, name in ipairs({'due', 'held', 'dropped', 'results', 'bytes'}) do redis.call('EXPIRE', P .. name, 2 * WEEK) end
end
local function drop_result(call)
  local size = redis.call('HGET', claim_key(call), 'size')
  if redis.call('ZREM', P .. 'results', call) == 1 then
    if size then redis.call('DECRBY', P .. 'bytes', size) end
    -- The sizes of claims that have expired are not known.
    if redis.call('EXISTS', P .. 'results') == 0 then redis.call('DEL', P .. 'bytes') end
  end
  redis.call('HDEL', claim_key(call), 'result')
end
local function purge(now, most)
  local ms, running = now_ms(), {}
  for _, call in ipairs(redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', now, 'LIMIT', 0, most)) do
    local c = redis.call('HMGET', claim_key(call), 'done', 'lease', 'holder', 'claimed', 'kept', 'deadline')
    if c[4] and not c[1] and tonumber(c[2]) > ms then
      running[call] = (tonumber(c[2]) - ms) / 1000
    else
      local due = redis.call('ZSCORE', P .. 'due', call)
      redis.call('ZREM', P .. 'due', call)
      if not c[4] then
        move('claimed', due)
      elseif tonumber(c[5]) >= tonumber(c[6]) then
        move('deadline', c[6])
      else
        move('claimed', c[4])
      end
      if c[3] and c[3] ~= '' and redis.call('HINCRBY', P .. 'held', c[3], -1) <= 0 then
        redis.call('HDEL', P .. 'held', c[3])
      end
      drop_result(call)
      redis.call('DEL', claim_key(call))
    end
  end
  for call, left in pairs(running) do redis.call('ZADD', P .. 'due', tonumber(now) + math.max(1, left), call) end
end
local function taken(now)
  return redis.call('ZCARD', P .. 'due') - redis.call('ZCOUNT', P .. 'due', '-inf', now)
end
local function share_taken(holder, count, pressure, share)
  return holder ~= '' and count > tonumber(pressure)
    and tonumber(redis.call('HGET', P .. 'held', holder) or '0') >= tonumber(share)
end
"""
)

CLAIM = (
    _CLAIMS
    + """
local call, answers, request, owner, issued, claimed, kept, deadline, holder, lease, most, pressure, share, purged, difference,
  birth = unpack(ARGV)
purge(claimed, purged)
redis.call('HSETNX', P .. 'dropped', 'born', birth)
local found = there(call)
if found then
  if found[4] == owner then return {'ours'} end
  return found
end
if forgotten(issued, deadline, difference) then return {'forgotten'} end
local count = taken(claimed)
if count >= tonumber(most) then return {'full'} end
if share_taken(holder, count, pressure, share) then return {'share'} end
redis.call('HSET', claim_key(call), 'answers', answers, 'request', request, 'owner', owner, 'claimed', claimed, 'kept', kept,
  'deadline', deadline, 'holder', holder, 'lease', now_ms() + tonumber(lease))
keep_claim(call, claimed, kept)
redis.call('ZADD', P .. 'due', kept, call)
if holder ~= '' then redis.call('HINCRBY', P .. 'held', holder, 1) end
keep_totals()
return {'ours'}
"""
)

TAKE_OVER = (
    _CLAIMS
    + """
local call, lapsed_owner, answers, request, owner, claimed, kept, lease = unpack(ARGV)
local c = redis.call('HMGET', claim_key(call), 'owner', 'done', 'kept', 'claimed')
if c[1] == owner then return 1 end
if not c[1] or c[2] or c[1] ~= lapsed_owner then return 0 end
if tonumber(c[3]) > tonumber(kept) then kept = c[3] end
if tonumber(c[4]) > tonumber(claimed) then claimed = c[4] end
keep_claim(call, claimed, kept)
redis.call('HSET', claim_key(call), 'answers', answers, 'request', request, 'owner', owner, 'claimed', claimed, 'kept', kept,
  'lease', now_ms() + tonumber(lease))
redis.call('ZADD', P .. 'due', kept, call)
return 1
"""
)

WITHDRAW = (
    _CLAIMS
    + """
local call, owner = unpack(ARGV)
local c = redis.call('HMGET', claim_key(call), 'owner', 'done', 'holder')
if c[1] ~= owner or c[2] then return 0 end
redis.call('ZREM', P .. 'due', call)
redis.call('DEL', claim_key(call))
if c[3] and c[3] ~= '' and redis.call('HINCRBY', P .. 'held', c[3], -1) <= 0 then redis.call('HDEL', P .. 'held', c[3]) end
return 1
"""
)

RENEW = (
    _CLAIMS
    + """
local call, owner, lease = unpack(ARGV)
local c = redis.call('HMGET', claim_key(call), 'owner', 'claimed', 'kept')
if c[1] == owner then
  keep_claim(call, c[2], c[3])
  redis.call('HSET', claim_key(call), 'lease', now_ms() + tonumber(lease))
end
return 1
"""
)

FINISH = (
    _CLAIMS
    + """
local call, owner, result, most = unpack(ARGV)
local c = redis.call('HMGET', claim_key(call), 'owner', 'done')
if c[1] ~= owner or c[2] then return 0 end
redis.call('HSET', claim_key(call), 'done', '1', 'result', result, 'size', #result)
local last = redis.call('ZREVRANGE', P .. 'results', 0, 0, 'WITHSCORES')
redis.call('ZADD', P .. 'results', tonumber(last[2] or '0') + 1, call)
local total = redis.call('INCRBY', P .. 'bytes', #result)
while total > tonumber(most) do
  drop_result(redis.call('ZRANGE', P .. 'results', 0, 0)[1])
  total = tonumber(redis.call('GET', P .. 'bytes') or '0')
end
keep_totals()
return 1
"""
)

READ = (
    _CLAIMS
    + """
local call, issued, deadline, difference = unpack(ARGV)
local found = there(call)
if found then return found end
if forgotten(issued, deadline, difference) then return {'forgotten'} end
return {'none'}
"""
)

CHECK_ROOM = (
    _CLAIMS
    + """
local holder, now, most, pressure, share, purged, difference, birth = unpack(ARGV)
if redis.call('HSETNX', P .. 'dropped', 'born', birth) == 1 then redis.call('EXPIRE', P .. 'dropped', 2 * WEEK) end
if too_early(now, difference) then return {'forgotten'} end
local count = taken(now)
if count >= tonumber(most) then return {'full'} end
if share_taken(holder, count, pressure, share) then
  purge(now, purged)  -- perhaps it is taken by claims that need not be kept any longer
  if share_taken(holder, count, pressure, share) then return {'share'} end
end
return {'ok'}
"""
)

# Sessions. `s:SESSION` is a session, `unused` and `used` hold them by the time of their last use, `sholder` has the holder of each,
# `sheld` counts those of each holder. `r:SESSION` has the worker and the request for each request under way, `q:SESSION` the worker
# for each open question, `a:SESSION` the answer if it has come. `rw:WORKER` and `qw:WORKER` list the same requests and questions by
# worker. `w:WORKER` expires unless the worker gives signs of life, `workers` lists them, `m:WORKER` is the mail for one. Where two
# names stand together, a line feed separates them.

_SESSIONS = (
    _COMMON
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
  if not known.questions[pair] then
    local session, question = split(pair)
    close_question(session, question)
  end
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
local before = redis.call('HGET', P .. 'a:' .. session, question)
if before then return before == mail and 'sent' or 'unknown' end
redis.call('HSET', P .. 'a:' .. session, question, mail)
redis.call('EXPIRE', P .. 'a:' .. session, WEEK)
post(worker, mail)
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
