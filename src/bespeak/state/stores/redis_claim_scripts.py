"""The Lua scripts of the claims in Redis.

Redis runs each script as one step, and its clock measures the leases. Every script gets the prefix of the server's keys. Numbers
are passed as text and kept as they are, because Lua would round them. When Redis has no memory left, it refuses a script if its
first write could add something. Thus a script that makes room, or keeps something alive, begins with a write that cannot.
"""

COMMON = """
local P = KEYS[1]
local WEEK = 604800
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
"""

# Claims. `c:CALL` is a claim, `due` holds all calls by the end of their time, `results` those with a result by age,
# `held` counts the claims of each holder, `bytes` the bytes of all results, `dropped` is the horizon and the incarnation.

_CLAIMS = (
    COMMON
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
local function forgotten(issued, deadline, difference, incarnation)
  local h = redis.call('HMGET', P .. 'dropped', 'incarnation', 'deadline')
  return h[1] ~= incarnation or too_early(issued, difference) or (h[2] and tonumber(deadline) <= tonumber(h[2]))
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

_NEW_CLAIMS = (
    _CLAIMS
    + """
local answers, request, owner, issued, claimed, kept, deadline, holder, most, pressure, share, purged, difference,
  incarnation = unpack(ARGV, 1, 14)
local function why_not()
  if forgotten(issued, deadline, difference, incarnation) then return 'forgotten' end
  local count = taken(claimed)
  if count >= tonumber(most) then return 'full' end
  if share_taken(holder, count, pressure, share) then return 'share' end
end
local function add(call, ...)
  redis.call('HSET', claim_key(call), 'answers', answers, 'request', request, 'owner', owner, 'claimed', claimed, 'kept', kept,
    'deadline', deadline, 'holder', holder, ...)
  keep_claim(call, claimed, kept)
  redis.call('ZADD', P .. 'due', kept, call)
  if holder ~= '' then redis.call('HINCRBY', P .. 'held', holder, 1) end
  keep_totals()
end
purge(claimed, purged)
"""
)

CLAIM = (
    _NEW_CLAIMS
    + """
local call, lease = ARGV[15], ARGV[16]
local found = there(call)
if found then
  if found[4] == owner then return {'ours'} end
  return found
end
local reason = why_not()
if reason then return {reason} end
add(call, 'lease', now_ms() + tonumber(lease))
return {'ours'}
"""
)

TAKE_TRY = (
    _NEW_CLAIMS
    + """
for index = 15, #ARGV do
  local before = redis.call('HGET', claim_key(ARGV[index]), 'answers')
  if before == answers then return {'taken', index - 14} end
  if not before then
    local reason = why_not()
    if reason then return {reason} end
    add(ARGV[index], 'lease', 0, 'done', '1')
    return {'taken', index - 14}
  end
end
return {'taken', 0}
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
  return 1
end
return 0
"""
)

FINISH = (
    _CLAIMS
    + """
local call, owner, result, most = unpack(ARGV)
local c = redis.call('HMGET', claim_key(call), 'owner', 'done')
if c[1] ~= owner then return 0 end
if c[2] then return 1 end
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
local call, issued, deadline, difference, incarnation = unpack(ARGV)
local found = there(call)
if found then return found end
if forgotten(issued, deadline, difference, incarnation) then return {'forgotten'} end
return {'none'}
"""
)

CHECK_ROOM = (
    _CLAIMS
    + """
local holder, now, most, pressure, share, purged, difference, new = unpack(ARGV)
local incarnation = redis.call('HGET', P .. 'dropped', 'incarnation')
if not incarnation then
  redis.call('HSET', P .. 'dropped', 'incarnation', new)
  incarnation = new
end
if redis.call('TTL', P .. 'dropped') < WEEK then redis.call('EXPIRE', P .. 'dropped', 2 * WEEK) end
if too_early(now, difference) then return {'forgotten'} end
local count = taken(now)
if count >= tonumber(most) then return {'full'} end
if share_taken(holder, count, pressure, share) then
  purge(now, purged)  -- perhaps it is taken by claims that need not be kept any longer
  if share_taken(holder, count, pressure, share) then return {'share'} end
end
return {'ok', incarnation}
"""
)
