-- For wrk: calls one tool again and again, checks every answer, and sends the retry of a call that asks.
-- Arguments: the tool, the value of Host, and the id of a session for calls of 2025-11-25 or "-".

local tool, host, session
local head
local ready, sent, taken = {}, 0, 0
local number = 0
finished, wrong, example = 0, 0, ""

local META = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",' ..
  '"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},' ..
  '"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"progressToken":%d}'

local function message(id, more)
  local meta = session == "-" and META:format(id) or ('"_meta":{"progressToken":%d}'):format(id)
  local body = ('{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"a":%d,"b":2},%s%s}}')
    :format(id, tool, id, more, meta)
  return head .. #body .. "\r\n\r\n" .. body
end

local threads = {}
function setup(thread) table.insert(threads, thread) end

function init(args)
  tool, host, session = args[1], args[2], args[3]
  head = "POST /mcp HTTP/1.1\r\nHost: " .. host .. "\r\nAccept: application/json, text/event-stream\r\n" ..
    "Content-Type: application/json\r\n"
  if session == "-" then
    head = head .. "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: " .. tool .. "\r\n"
  else
    head = head .. "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: " .. session .. "\r\n"
  end
  head = head .. "Content-Length: "
end

-- Retries go first, on whichever connection is free: a server keeps nothing between rounds.
function request()
  if taken < sent then
    taken = taken + 1
    local retry = ready[taken]
    ready[taken] = nil
    return retry
  end
  number = number + 1
  return message(number, "")
end

function response(status, headers, body)
  local id = body:match('"id":(%d+)')
  if status == 200 and id and body:find('"input_required"', 1, true) then
    local key, state = body:match('"inputRequests":{"([^"]*)"'), body:match('"requestState":"([^"]*)"')
    local echoed = state and ('"requestState":"%s",'):format(state) or ""
    sent = sent + 1
    ready[sent] = message(id, ('"inputResponses":{"%s":{"action":"accept","content":{"yes":true}}},%s')
      :format(key, echoed))
  elseif status == 200 and id and body:find('"text":"' .. (id + 2) .. '"', 1, true)
    and (tool ~= "progressing" or session ~= "-" or body:find("notifications/progress", 1, true)) then
    finished = finished + 1
  else
    wrong = wrong + 1
    if example == "" then example = status .. " " .. body:sub(1, 300) end
  end
end

function done(summary, latency, requests)
  local calls, failures, first = 0, 0, ""
  for _, thread in ipairs(threads) do
    calls = calls + thread:get("finished")
    failures = failures + thread:get("wrong")
    if first == "" then first = thread:get("example") end
  end
  local errors = summary.errors
  failures = failures + errors.connect + errors.read + errors.write + errors.timeout
  io.write(("calls %d seconds %.6f wrong %d %s\n"):format(calls, summary.duration / 1e6, failures, first))
end
