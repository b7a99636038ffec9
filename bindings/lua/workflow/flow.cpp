// The flow verbs, written in Lua with the primitives of scope.cpp, fiber.cpp and step.cpp: scope, defer, errdefer,
// spawn, all, race, map, step, try_rent. Also the body of every fiber, and lists that print as tables.
#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

namespace {

const char* const flow_source = R"lua(
local core, rille = ...
local raise, describe, trace = core.raise, core.describe, core.trace
local select, error, type, rawequal, setmetatable, ipairs, tostring = select, error, type, rawequal, setmetatable,
  ipairs, core.tostring
local pairs, pcall, xpcall = core.store.pairs, core.store.pcall, core.xpcall
local plain_begin, plain_end, plain_step = core.plain_begin, core.plain_end, core.plain_step
local words = {}

-- Options are tables whose names are known; "did you mean" for the others.
local function check_options(verb, options, known)
  if options == nil then return {} end
  if type(options) ~= "table" then
    raise("invalid", verb .. ": expected a table of options, got " .. describe(options))
  end
  for key in core.raw_pairs(options) do
    local found = false
    for _, k in ipairs(known) do found = found or k == key end
    if not found then
      local near = type(key) == "string" and core.did_you_mean(key, known) or ""
      raise("invalid", verb .. ": unknown option " .. (type(key) == "string" and "'" .. key .. "'" or describe(key)),
        near ~= "" and near or "the options are: " .. table.concat(known, ", "))
    end
  end
  return options
end

local function check_function(verb, fn)
  if type(fn) ~= "function" then raise("invalid", verb .. ": expected a function last, got " .. describe(fn)) end
end

-- Scopes --------------------------------------------------------------------------------------------------------------

-- Children first, then defers (last in, first out), then leases. The first error stays; what cleanup meets besides
-- is noted. A defer that only an error calls for is passed over while all is well.
local function unwind(data, scope, ok, ...)
  if scope.background then
    for _, id in ipairs(scope.background) do core.cancel(id, "the body of its scope has ended") end
  end
  local failure
  if not ok then failure = (...) end
  local settled, err = pcall(core.scope_settle, scope.id, ok, failure)
  if not settled and (ok or core.is_cancelled(failure)) then ok, failure = false, err end
  for i = #scope.defers, 1, -1 do
    local done, problem = true
    if not (ok and scope.only_failed[i]) then done, problem = xpcall(scope.defers[i], trace) end
    if not done then
      if ok then ok, failure = false, problem else core.note_error(problem) end
    end
  end
  data.scope = scope.parent
  local found, leases = true, nil
  if ok then found, leases = pcall(core.leases_in, ...) end
  if not found then ok, failure, leases = false, leases, nil end
  local released, problem = pcall(core.scope_release, scope.id, leases)
  if not released and ok then ok, failure = false, problem end
  core.scope_leave(scope.id)
  if ok then return ... end
  error(failure, 0)
end

local function in_scope(name, fn, ...)
  local data = core.fiber_data()
  local scope = { id = core.scope_enter(name), defers = {}, only_failed = {}, parent = data.scope }
  data.scope = scope
  return unwind(data, scope, xpcall(fn, trace, ...))
end

local function start(fn, ...)
  core.checkpoint()
  return fn(...)
end

local function fiber_body(fn, ...)
  local data = core.fiber_data()
  local scope = { id = core.root_scope(), defers = {}, only_failed = {} }
  data.scope = scope
  return unwind(data, scope, xpcall(start, trace, fn, ...))
end

function words.scope(name, fn)
  if fn == nil and type(name) == "function" then name, fn = "scope", name end
  check_function("rille.scope", fn)
  return in_scope(name, fn)
end

local function defer(verb, fn, only_failed)
  check_function("rille." .. verb, fn)
  core.check_not_in_step(verb)
  local scope = core.fiber_data().scope
  local n = #scope.defers + 1
  scope.defers[n], scope.only_failed[n] = fn, only_failed
end

function words.defer(fn) defer("defer", fn, false) end
function words.errdefer(fn) defer("errdefer", fn, true) end

-- Fibers --------------------------------------------------------------------------------------------------------------

local Handle = {}

local function keep(handle, ok, ...)
  handle.ok, handle.n = ok, select("#", ...)
  if handle.n > 1 then handle.values = { ... } else handle.value = (...) end
  if ok then return end
  error((...), 0)
end

local function spawn(name, fn)
  local state = { name = name }
  state.id = core.spawn(name, function() return keep(state, xpcall(fn, trace)) end)
  return setmetatable({ _state = state }, Handle)
end

local function state_of(handle, verb)
  local state = type(handle) == "table" and core.metatable(handle) == Handle and rawget(handle, "_state")
  if not state then
    raise("invalid", verb .. ": expected the handle that rille.spawn gives, got " .. describe(handle),
      "methods are called with a colon: handle:wait()")
  end
  return state
end

local methods = {}

-- Gives what the fiber's function returned, or raises what it raised.
function methods.wait(handle)
  local state = state_of(handle, "handle:wait")
  local ok, err = pcall(core.join, state.id)
  if not ok and (core.am_cancelled() or state.ok ~= false) then error(err, 0) end
  if state.ok == false then error(state.value or state.values[1], 0) end
  if state.ok == nil then raise("cancelled", "the fiber '" .. state.name .. "' was cancelled before it began") end
  if state.n > 1 then return unpack(state.values, 1, state.n) end
  return state.value
end

function methods.cancel(handle, reason)
  core.cancel(state_of(handle, "handle:cancel").id, reason or "cancelled by the fiber that spawned it")
end

function methods.done(handle) return core.ended(state_of(handle, "handle:done").id) end

Handle.__index = function(handle, key)
  if methods[key] then return methods[key] end
  if key == "name" or key == "id" then return rawget(handle, "_state")[key] end
  local names = { "wait", "cancel", "done", "name", "id" }
  local near = core.did_you_mean(tostring(key), names)
  raise("invalid", "a fiber's handle has no field or method '" .. tostring(key) .. "'",
    near ~= "" and near or "it has: " .. table.concat(names, ", "))
end
Handle.__newindex = function() raise("invalid", "the fields of a fiber's handle cannot be set") end
Handle.__tostring = function(handle) return "Fiber '" .. rawget(handle, "_state").name .. "'" end
Handle.__metatable = "Fiber"

local function is_handle(v) return type(v) == "table" and core.metatable(v) == Handle end

function words.spawn(name, fn)
  if type(name) == "function" then
    raise("invalid", "rille.spawn: the name comes first", 'rille.spawn("name", function() ... end)')
  end
  check_function("rille.spawn", fn)
  return spawn(name, fn)
end

local function spawn_each(verb, list)
  if type(list) ~= "table" then raise("invalid", verb .. ": expected a table of functions, got " .. describe(list)) end
  local keys, handles = {}, {}
  for key, fn in pairs(list) do
    if not is_handle(fn) and type(fn) ~= "function" then
      raise("invalid", verb .. ": entry " .. tostring(key) .. " is " .. describe(fn),
        "give functions, or handles of rille.spawn")
    end
  end
  for key, fn in pairs(list) do
    keys[#keys + 1] = key
    handles[#handles + 1] = is_handle(fn) and fn or spawn(verb:match("[^.]+$") .. "." .. tostring(key), fn)
  end
  return keys, handles
end

-- Runs all at the same time; gives their first results under the same keys. The first error ends the others.
function words.all(list)
  return in_scope("all", function()
    local keys, handles = spawn_each("rille.all", list)
    local out = {}
    for i, handle in ipairs(handles) do out[keys[i]] = handle:wait() end
    return out
  end)
end

-- Gives the first result of the first to end, and its key; the others are cancelled.
function words.race(list)
  return in_scope("race", function()
    local keys, handles = spawn_each("rille.race", list)
    if #handles == 0 then raise("invalid", "rille.race: the table is empty") end
    local ids = {}
    for i, handle in ipairs(handles) do ids[i] = handle.id end
    local first = core.join_any(ids, true)
    for i, handle in ipairs(handles) do
      if i ~= first then core.cancel(handle.id, "another one of the race was first") end
    end
    return (handles[first]:wait()), keys[first]
  end)
end

-- Calls fn(item, index) for each item in a fiber of its own, at most `limit` at a time; gives the results in order.
function words.map(name, list, options, fn)
  if fn == nil and type(options) == "function" then options, fn = nil, options end
  if type(name) ~= "string" then
    raise("invalid", "rille.map: expected its name first, got " .. describe(name),
      'rille.map("name", list, function(item) ... end)')
  end
  if type(list) ~= "table" then raise("invalid", "rille.map: expected a list, got " .. describe(list)) end
  check_function("rille.map", fn)
  options = check_options("rille.map", options, { "limit", "key" })
  local limit, key = options.limit or math.huge, options.key
  if type(limit) ~= "number" or limit < 1 then
    raise("invalid", "rille.map: limit must be a number from 1 on, got " .. describe(limit))
  end
  local label = function(item, i)
    if key == nil then return i end
    local k
    if type(key) == "function" then
      k = key(item, i)
    elseif type(item) == "table" or type(item) == "userdata" then
      k = item[key]
    end
    if type(k) ~= "string" and type(k) ~= "number" then
      raise("invalid", "rille.map: the key of item " .. i .. " must be a string or a number, got " .. describe(k))
    end
    return k
  end
  return in_scope(name, function()
    local out, running, ids, index_of = {}, 0, {}, {}
    local n, next_item = #list, 1
    local handles = {}
    while next_item <= n do
      while next_item <= n and #ids < limit do
        local i, item = next_item, list[next_item]
        local handle = spawn(name .. "[" .. label(item, i) .. "]", function() return fn(item, i) end)
        ids[#ids + 1], handles[#handles + 1], index_of[#index_of + 1] = handle.id, handle, i
        next_item = next_item + 1
      end
      if next_item > n then break end
      local at = core.join_any(ids, false)
      out[index_of[at]] = handles[at]:wait()
      table.remove(ids, at); table.remove(handles, at); table.remove(index_of, at)
    end
    -- All have begun: the rest may be waited for in their order; a failure ends them all through the scope.
    for k = 1, #ids do out[index_of[k]] = handles[k]:wait() end
    return out
  end)
end

-- Pools ---------------------------------------------------------------------------------------------------------------

local function leave_pool(name, permit, ok, ...)
  core.pool_leave(name, permit)
  if ok then return ... end
  error((...), 0)
end

-- Runs fn while it holds a permit of the pool; gives what fn returns.
function words.pool(name, options, fn)
  check_options("rille.pool", options, { "slots", "rate", "per" })
  check_function("rille.pool", fn)
  return leave_pool(name, core.pool_enter(name, options), xpcall(fn, trace))
end

-- For modules in Lua (rille.native) -----------------------------------------------------------------------------------

core.flow = { keep_lease = core.keep_lease, telemetry = core.telemetry, seconds = core.seconds,
  standing = core.standing, trace = trace }

function core.flow.scope_id() return core.fiber_data().scope.id end

-- The fiber serves the body of the present scope: it is cancelled when that ends, rather than waited for.
function core.flow.background(handle)
  local scope = core.fiber_data().scope
  scope.background = scope.background or {}
  scope.background[#scope.background + 1] = handle.id
end

-- The index of the first to end, recorded.
function core.flow.first_ended(handles)
  local ids = {}
  for i, handle in ipairs(handles) do ids[i] = handle.id end
  return core.join_any(ids, true)
end

-- Until it is cancelled.
function core.flow.rest() core.join_any({}, false) end

-- Steps ---------------------------------------------------------------------------------------------------------------

local function after_body(ticket, fn, ok, ...)
  local change = core.step_leave(ticket, fn, ok)
  if change then return core.step_end(ticket, false, change) end
  return core.step_end(ticket, ok, (...), select("#", ...))
end

-- The rest of a step whose body has run on the short way (step_plain.cpp).
local function after_plain(fn, ok, ...)
  if ok then
    local done, err = plain_end(fn, (...), select("#", ...))
    if done then
      local kind = type((...))
      if kind ~= "table" and kind ~= "userdata" then return (...) end
      return core.plain_result()
    end
    if done == false then return core.raise_awaited(false, err) end
  end
  local ticket = core.plain_ticket()
  local again, value, failed = after_body(ticket, fn, ok, ...)
  while again do
    core.step_enter(ticket, fn)
    again, value, failed = after_body(ticket, fn, xpcall(fn, trace, value, ticket))
  end
  if failed then error(value, 0) end
  return value
end

local function after_probe(ticket, fn, ok, ...)
  local change = core.step_leave(ticket, fn, ok)
  if change then return core.step_probed(ticket, false, change) end
  return core.step_probed(ticket, ok, ...)
end

-- The body of a step whose effect is a transaction (step_tx.cpp); an earlier process may have committed it.
local function transaction(fn, attempt, ticket)
  local found, value = core.tx_begin(ticket)
  if found then return value end
  return fn(attempt, ticket)
end

-- In a rehearsal: what is declared stands for the body.
local function stand_in(sim)
  return function()
    if sim.duration then rille.sleep(sim.duration) end
    return sim.result
  end
end

-- Runs fn once, records what it returns, and gives that on every resume. fn receives the number of the attempt and the
-- ticket.
function words.step(name, options, fn)
  if fn == nil and type(options) == "function" then options, fn = nil, options end
  if options == nil and plain_begin(name, fn) then return after_plain(fn, xpcall(fn, trace, 1, plain_step)) end
  local ticket, recorded, value, failed, tx, sim = core.step_begin(name, options, fn)
  if recorded then
    if failed then error(value, 0) end
    return value
  end
  if sim then fn, failed, tx = stand_in(sim), false, false end
  local attempt, again = value, true
  if failed then  -- it was cut off, and there is a probe that may know how far it came
    local probe = options.probe
    core.step_enter(ticket, probe)
    again, attempt, failed = after_probe(ticket, probe, xpcall(probe, trace, ticket))
    value = attempt
  end
  while again do
    core.step_enter(ticket, fn)
    if tx then
      again, value, failed = after_body(ticket, fn, xpcall(transaction, trace, fn, attempt, ticket))
    else
      again, value, failed = after_body(ticket, fn, xpcall(fn, trace, attempt, ticket))
    end
    attempt = value
  end
  if failed then error(value, 0) end
  return value
end

-- As rent, but gives nil and the error when there is nothing to rent at present.
function words.try_rent(name, options)
  local ok, result = pcall(rille.rent, name, options)
  if ok then return result end
  if core.is_error(result) and result.kind == "capacity" then return nil, result end
  error(result, 0)
end

-- Lists that print as tables ------------------------------------------------------------------------------------------

local column_order = { "name", "provider", "id", "gpu", "gpu_count", "gpu_memory_bytes", "vcpus", "memory_bytes",
  "interconnect", "rdma", "network_gbps", "region", "compliance", "spot", "price_per_hour",
  "reserved_1y_price_per_hour", "reserved_3y_price_per_hour", "currency",
  "dollars_per_hour", "price_per_tflop", "price_per_gpu_gb", "tokens_per_dollar", "state" }

-- A price per hour is in the currency of its row; what is per something else has been converted.
local function cell(key, v, row)
  if v == nil then return "-" end
  if type(v) == "boolean" then return v and "yes" or "no" end
  if type(v) == "number" and (key:find("price") or key == "dollars_per_hour") then
    local foreign = key:find("price_per_hour$") or key == "disk_price_per_gb_hour"
    if foreign and row.currency and row.currency ~= "USD" then return ("%.4g %s"):format(v, row.currency) end
    return ("$%.4g"):format(v)
  end
  if type(v) == "number" and (key:find("memory") or key:find("bytes")) then
    return v < 1e12 and ("%.4g GB"):format(v / 1e9) or ("%.4g TB"):format(v / 1e12)
  end
  if type(v) == "table" then return type(v[1]) == "string" and table.concat(v, " ") or "..." end
  return tostring(v)
end

-- The line of a list for a provider that failed or for omitted rows: "aws, us-east-1: no such key; set ..".
local function remark(row)
  if type(row) ~= "table" or row.id ~= nil or row.provider == nil or not (row.error or row.note) then return nil end
  local where = row.provider .. (row.region and ", " .. row.region or "")
  local text = row.note or (row.kind and "error (" .. row.kind .. "): " or "error: ") .. row.error
  return where .. ": " .. text .. (row.hint and row.hint ~= "" and "\n  hint: " .. row.hint or "")
end

local function print_list(whole)
  if #whole == 0 then return "(none)" end
  local list, remarks = {}, {}
  for _, row in ipairs(whole) do
    local text = remark(row)
    if text then remarks[#remarks + 1] = text else list[#list + 1] = row end
  end
  if #list == 0 then return table.concat(remarks, "\n") end
  local present, columns = {}, {}
  for _, row in ipairs(list) do
    for key, v in core.raw_pairs(type(row) == "table" and row or {}) do
      if type(v) ~= "table" or type(v[1]) == "string" then present[key] = true end  -- parts have no room in a cell
    end
  end
  for _, key in ipairs(column_order) do
    if present[key] then columns[#columns + 1], present[key] = key, nil end
  end
  local rest = core.names_of(present)
  for _, key in ipairs(rest) do columns[#columns + 1] = key end
  local lines, widths = { {} }, {}
  for c, key in ipairs(columns) do lines[1][c] = key:gsub("_bytes", ""):gsub("_", " "):upper() end
  for r, row in ipairs(list) do
    lines[r + 1] = {}
    for c, key in ipairs(columns) do lines[r + 1][c] = cell(key, row[key], row) end
  end
  for _, line in ipairs(lines) do
    for c, text in ipairs(line) do widths[c] = math.max(widths[c] or 0, #text) end
  end
  for r, line in ipairs(lines) do
    for c, text in ipairs(line) do line[c] = c < #line and text .. (" "):rep(widths[c] - #text) or text end
    lines[r] = table.concat(line, "  ")
  end
  for _, text in ipairs(remarks) do lines[#lines + 1] = text end
  return table.concat(lines, "\n")
end

local List = { __tostring = print_list, __metatable = "List" }
function core.list_view(list) return setmetatable(list, List) end

for name, word in core.raw_pairs(words) do rawset(rille, name, word) end
rawset(rille, "print", core.store.print)
return fiber_body
)lua";

}  // namespace

int open_flow(lua_State* L) {
  lua_settop(L, 1);
  push_rille_core(L);
  add_scope_functions(L);
  add_fiber_functions(L);
  add_step_functions(L);
  add_pool_functions(L);
  add_cluster_functions(L);
  load_ours(L, flow_source, "=[rille.flow]");
  lua_insert(L, 2);
  lua_pushvalue(L, 1);
  lua_call(L, 2, 1);
  set_fiber_body(L);
  return 0;
}

}  // namespace rille::lua
