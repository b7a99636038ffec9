// Lua code that makes the environment of user code: coroutines that pass awaits to the host, require, print and
// loaders, tostring without addresses, io and os that are checked against the rules, strict globals; order.cpp provides
// pairs, next and table.sort, reach.cpp the functions of io and os. Runs once per Lua state with the functions of
// core.cpp; returns the user's globals and the `rille` table.
#include "bindings/host/prelude.hpp"

namespace rille::host {

const char* const prelude_source = R"lua(
local core, parents, AWAIT, order, reach = ...
local raw = { next = next, tostring = tostring, format = string.format, sort = core.sort, type = type, pcall = pcall,
  xpcall = xpcall, rep = string.rep, lower = string.lower, insert = table.insert }
local type, rawget, rawset, setmetatable, getmetatable, select, error = type, rawget, rawset, setmetatable,
  getmetatable, select, error
local running, resume, yield, create, status = coroutine.running, coroutine.resume, coroutine.yield, coroutine.create,
  coroutine.status
local raise, check_stack = core.raise, core.check_stack
local behind = {}  -- the sealed table that scripts see -> our module
local pairs, next, sort = order(core, behind)
local may = core.may

-- A function of C that has given way may fail later. Lua code that called it gets the error by the hook; where C did
-- (pcall, a coroutine's first function, also by a tail call), failed[1] has it, and the call seems to have succeeded.
local failed = core.failed

local function failure()
  local err = failed[1]
  failed[1] = nil
  return err
end

local function after_pcall(...)
  if failed[1] then return false, failure() end
  return ...
end

local function pcall(f, ...)
  if f == error then return raw.pcall(f, ...) end  -- a tail call, so that pcall(error, message, level) counts as ever
  return after_pcall(raw.pcall(f, ...))
end

local function after_xpcall(handler, ...)
  if failed[1] then return false, (handler(failure())) end
  return ...
end

function core.xpcall(f, handler, ...) return after_xpcall(handler, raw.xpcall(f, handler, ...)) end

-- Await ---------------------------------------------------------------------------------------------------------------

local function shim(call, unpack_result)
  return function(...) return unpack_result(call(...)) end
end

-- A script's coroutine that awaits yields the sentinel up; the result is passed down to it. One that the hook suspends,
-- because the turn is over, yields nothing; a C function that has given way then gets its results.
local gives_way, held = core.gives_way, core.held
local waits = setmetatable({}, { __mode = "k" })  -- coroutines that await: only the fiber goes on with them
local resume_waiting

local function pass(co, ok, first, ...)
  if gives_way[1] then
    waits[co] = true
    return resume_waiting(co, yield())
  end
  if ok and first == AWAIT and type(first) == "userdata" then
    waits[co] = true
    return resume_waiting(co, yield(AWAIT))
  end
  if failed[1] then return false, failure() end
  return ok, first, ...
end

function resume_waiting(co, ...)
  waits[co] = nil
  return pass(co, resume(co, ...))
end

local function co_resume(co, ...)
  check_stack()
  if type(co) == "thread" and status(co) == "suspended" then
    if waits[co] or type(parents[co]) == "boolean" then
      return false, "cannot resume a coroutine that waits in a fiber"
    end
    parents[co] = running()
  end
  return pass(co, resume(co, ...))
end

local function raise_or_return(ok, ...)
  if ok then return ... end
  error((...), 0)
end

local function co_wrap(f)
  local co = create(f)
  return function(...) return raise_or_return(co_resume(co, ...)) end
end

local function co_yield(...)
  local co = running()
  if not co or type(parents[co]) == "boolean" then
    raise("state", "coroutine.yield outside of a coroutine of the script",
      "rille.spawn starts fibers, which wait by themselves")
  end
  if held[co] then
    raise("state", "coroutine.yield inside of a scope or a step that its coroutine is in",
      "begin the scope or the step outside of the coroutine, or end it before the yield")
  end
  return yield(...)
end

-- Text ----------------------------------------------------------------------------------------------------------------

local effects_allowed = core.effects_allowed

local whole_max = 2^53  -- up to here a number holds every integer

-- Hides addresses, which differ between a run and its resume. Shows integers with all digits, which Lua cuts after 14.
local function tostring(v)
  local kind = type(v)
  if kind == "string" then return v end
  if kind == "number" then
    local long = v >= 1e14 and v <= whole_max or v <= -1e14 and v >= -whole_max
    return long and v % 1 == 0 and raw.format("%d", v) or raw.tostring(v)
  end
  if kind == "table" or kind == "userdata" then
    local mt = core.metatable(v)
    if mt and rawget(mt, "__tostring") then return raw.tostring(v) end
  end
  if (kind == "table" or kind == "function" or kind == "thread" or kind == "userdata") and not effects_allowed() then
    return kind == "function" and core.function_name(v) or kind
  end
  return raw.tostring(v)
end

local int64_end = 2^63

-- LuaJIT writes -9223372036854775808 for every number that no int64 holds: such a %d becomes %.0f.
local function with_long_numbers(text, args)
  local out, at, i = "", 1, 0
  while true do
    local from, to, flags, width, kind = core.patterns.find(text, "%%([-+ #0]*)(%d*)%.?%d*([%a%%])", at)
    if not from then return out .. text:sub(at) end
    i = i + (kind == "%" and 0 or 1)
    local v = (kind == "d" or kind == "i") and args[i]
    local long = type(v) == "number" and not (v >= -int64_end and v < int64_end)
    out = out .. text:sub(at, from - 1) .. (long and "%" .. flags .. width .. ".0f" or text:sub(from, to))
    at = to + 1
  end
end

local function format(text, ...)
  local n = select("#", ...)
  for i = 1, n do
    local v = (select(i, ...))
    local kind = type(v)
    if kind == "number" and not (v >= -int64_end and v < int64_end) and type(text) == "string" then
      text = with_long_numbers(text, { ... })
    end
    if kind == "table" or kind == "function" or kind == "thread" or kind == "userdata" then
      local args = { ... }
      for j = 1, n do
        kind = type(args[j])
        if kind == "table" or kind == "function" or kind == "thread" or kind == "userdata" then
          args[j] = tostring(args[j])
        end
      end
      return raw.format(text, unpack(args, 1, n))
    end
  end
  return raw.format(text, ...)
end

-- A table without a text of its own is shown with its contents.
local function printed(v)
  if type(v) == "table" and core.metatable(v) == nil then return core.require("rille.inspect")(v) end
  return tostring(v)
end

local function print(...)
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = printed((select(i, ...))) end
  core.print(table.concat(parts, "\t") .. "\n")
end

-- Errors --------------------------------------------------------------------------------------------------------------

local recorded = setmetatable({}, { __mode = "k" })  -- coroutine in which a handler runs -> traceback of its error

local function traceback(message)
  local trace = recorded[running()]
  if not trace then return core.traceback(message) end
  return type(message) == "string" and message .. "\n" .. trace or trace
end

local function after_handler(co, outer, ok, result)
  recorded[co] = outer
  if ok then return false, result end
  return false, "error in error handling"  -- as LuaJIT
end

local function handle(handler, ok, ...)
  if ok then return true, ... end
  local co, err, trace = running(), (...)
  if type(err) == "table" then err, trace = err[1], err[2] end  -- else no memory was left for the box
  local outer = recorded[co]
  recorded[co] = trace
  return after_handler(co, outer, pcall(handler, err))
end

-- The handler runs after the stack is unwound (core.boxed says why), and may therefore wait.
local function xpcall(f, handler, ...)
  if handler == traceback then handler = core.traceback end
  if handler == core.traceback or handler == core.trace or type(handler) ~= "function" then
    return core.xpcall(f, handler, ...)
  end
  return handle(handler, core.xpcall(f, core.boxed, ...))
end

-- Globals -------------------------------------------------------------------------------------------------------------

local function copy(t, without)
  local out = {}
  for k, v in raw.next, t do out[k] = v end
  for _, k in ipairs(without or {}) do out[k] = nil end
  return out
end

local near_max = 2000  -- globals among which a near name is looked for

local function names_of(t, most)
  local out, n = {}, 0
  for k in raw.next, t do
    if type(k) == "string" then
      n = n + 1
      if n == most then return {} end
      out[n] = k
    end
  end
  raw.sort(out)
  return out
end

local why_not = {
  ["os.time"] = "use rille.now(): it is recorded, so that a resumed run sees the same time",
  ["os.clock"] = "use rille.now(): it is recorded, so that a resumed run sees the same time",
  ["os.date"] = "use rille.now(): it is recorded, so that a resumed run sees the same time",
  ["os.getenv"] = "read it in a step, or pass it as an argument: --name \"$VALUE\"",
  ["os.exit"] = "return from the script, or raise an error",
}

local function gated(name, lib)
  return setmetatable({}, {
    __index = function(_, key)
      local v = lib[key]
      if v == nil then
        raise("invalid", raw.format("%s.%s does not exist", name, raw.tostring(key)),
          core.did_you_mean(raw.tostring(key), names_of(lib)))
      end
      if not effects_allowed() then
        local full = name .. "." .. key
        raise("state",
          full .. " works only inside rille.step and on agents: in workflow code a resume would run it again",
          why_not[full] or "put it into rille.step(name, function() ... end)")
      end
      return v
    end,
    __newindex = function() raise("state", "the library " .. name .. " cannot be changed") end,
    __metatable = name,
  })
end

local strings = copy(string, { "dump" })
strings.format = format
for name, f in raw.next, core.patterns do strings[name] = f end

local gsub, gsub_begin, gsub_next, gsub_captures, gsub_key, gsub_end = core.patterns.gsub, core.gsub_begin,
  core.gsub_next, core.gsub_captures, core.gsub_key, core.gsub_end

local replace = core.interpret(function(text, pattern, by, most)
  local state, box = gsub_begin(text, pattern, most), {}
  local call = type(by) == "function"
  local found = gsub_next(state, box)
  while found ~= false do
    if found == nil then found = gsub_next(state, box)
    elseif call then found = gsub_next(state, box, by(gsub_captures(state)))
    else found = gsub_next(state, box, by[gsub_key(state)]) end
  end
  return gsub_end(state, box)
end)

local function is_text(value)
  local kind = type(value)
  return kind == "string" or kind == "number"
end

-- The loop is Lua's where code of the script may run in it: so that code can wait and give way.
function strings.gsub(...)
  local text, pattern, by, most = ...
  local kind = type(by)
  if (kind == "function" or kind == "table") and is_text(text) and is_text(pattern) and
    (most == nil or tonumber(most)) then
    return replace(text .. "", pattern .. "", by, most)
  end
  return gsub(...)
end

local integer_max = 2^31 - 1  -- LuaJIT's own functions take larger ones for negative ones

function strings.rep(text, times, between)
  local n = tonumber(times)
  if type(text) == "string" and n then
    if text == "" and (between == nil or between == "") then return "" end
    if n > integer_max or n * #text > integer_max then error("resulting string too large", 2) end
    if n * #text > 2^18 and (between == nil or type(between) == "string") then
      return core.patterns.rep(text, n - n % 1, between)
    end
  end
  return raw.rep(text, times, between)
end

getmetatable("").__index = strings
getmetatable("").__metatable = "string"

local tables = copy(table, { "foreach", "foreachi", "getn" })
tables.sort = sort
-- LuaJIT's own moves every position from the end of the list down to a negative one.
function tables.insert(t, ...)
  if select("#", ...) == 2 then
    local at = tonumber((...))
    if at and not (at >= 0 and at <= integer_max) then
      error("bad argument #2 to 'insert' (position out of bounds)", 2)
    end
  end
  return raw.insert(t, ...)
end

local maths = copy(math, { "randomseed" })
maths.random = core.random
maths.randomseed = core.randomseed

local coroutines = copy(coroutine)
coroutines.resume, coroutines.wrap, coroutines.yield = co_resume, co_wrap, co_yield

local store = {
  assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, pcall = pcall, rawequal = rawequal,
  rawget = rawget, rawset = rawset, rawlen = rawlen, select = select, setmetatable = setmetatable,
  tonumber = tonumber, type = type,
  unpack = unpack, xpcall = xpcall, _VERSION = _VERSION,
  next = next, pairs = pairs, tostring = tostring, print = print,
  string = strings, table = tables, math = maths, coroutine = coroutines, bit = bit,
  io = gated("io", reach.io(copy(io))), os = gated("os", reach.os(copy(os, { "exit", "setlocale" }))),
  debug = { traceback = traceback },
  collectgarbage = function(what)
    if what == nil or what == "collect" or what == "count" or what == "step" then
      return collectgarbage(what or "collect")
    end
    raise("invalid", raw.format("collectgarbage(%q) is not available", raw.tostring(what)),
      'use "collect", "count" or "step"')
  end,
}

local hidden = {
  ffi = "it is available on agents and in the REPL: require \"ffi\"",
  jit = "the comment `-- rille: jit` in the first lines compiles the script, where the host program allows it",
  package = "require finds modules beside the script", getfenv = "", setfenv = "",
  module = "return a table from the module instead",
  newproxy = "", gcinfo = "use collectgarbage(\"count\")",
}

setmetatable(store, {
  __index = function(_, key)
    if key == "_G" then return core.env() end
    if type(key) ~= "string" then return nil end
    if hidden[key] then raise("state", raw.format("'%s' is not available in workflow code", key), hidden[key]) end
    local near = core.did_you_mean(key, names_of(store, near_max))
    raise("invalid", raw.format("the global '%s' is not set", key),
      key == "rille" and 'the script begins with: local rille = require "rille"'
      or near ~= "" and near or "declare it: local " .. key .. " = ...")
  end,
})

-- All writes go through here, since the table itself stays empty: a step body must not set globals.
local env = setmetatable({}, {
  __index = store,
  __newindex = function(_, key, value)
    local step = core.step_name()
    if step then
      raise("state", raw.format("the body of step '%s' sets the global '%s'", step, raw.tostring(key)),
        "a finished step does not run again on resume: return the value from the step instead")
    end
    rawset(store, key, value)
  end,
  __metatable = "globals",
})

-- Loaders -------------------------------------------------------------------------------------------------------------

-- Scripts see our modules through an empty table, so that every write is refused, even to an existing key.
local function sealed(name, module)
  local seen, how = {}, {}
  for k, v in raw.next, getmetatable(module) or {} do how[k] = v end  -- some modules are callable
  how.__index, how.__metatable = module, name
  how.__newindex = function(_, key)
    raise("state", raw.format("the module %s cannot be changed: '%s'", name, raw.tostring(key)),
      "use a local or a global")
  end
  behind[seen] = module
  return setmetatable(seen, how)
end

local loaded, loading = {}, {}
local words = {}
local rille = sealed("rille", words)
loaded.rille = rille
for name, lib in raw.next, { string = strings, table = tables, math = maths, coroutine = coroutines, bit = bit,
  io = store.io, os = store.os, debug = store.debug } do
  loaded[name] = lib
end

-- What PyTorch has in torch.nn, and tensors have as methods here.
local methods = { relu = "relu()", gelu = "gelu()", silu = "silu()", sigmoid = "sigmoid()", tanh = "tanh()",
  softmax = "softmax()", log_softmax = "log_softmax()", logsoftmax = "log_softmax()", leakyrelu = "leaky_relu()",
  leaky_relu = "leaky_relu()", elu = "elu()", softplus = "softplus()", maxpool2d = "max_pool2d(2)",
  max_pool2d = "max_pool2d(2)", mse_loss = "mse_loss(target)", mseloss = "mse_loss(target)",
  l1_loss = "l1_loss(target)", l1loss = "l1_loss(target)", cross_entropy = "cross_entropy(labels)",
  crossentropyloss = "cross_entropy(labels)" }

local function hint_of_missing(name, module, key)
  local method = name == "rille.nn" and methods[raw.lower(key)]
  if not method then return core.did_you_mean(key, names_of(module)) end
  return "it is a method of tensors: x:" .. method .. "; a layer of nn.sequential may be a function of x"
end

-- A misspelt name in one of our modules raises instead of giving nil.
local function strict(name, module)
  setmetatable(module, { __index = function(_, key)
    key = raw.tostring(key)
    raise("invalid", raw.format("%s.%s does not exist", name, key), hint_of_missing(name, module, key))
  end })
end

local loading_ours = 0  -- modules of ours that are being loaded

local function require(name)
  if type(name) ~= "string" then
    raise("invalid", "require: expected the name of a module, got " .. core.describe(name))
  end
  -- The functions of rille.native rely on checks that the functions of rille.* make before they call them.
  if name == "rille.native" and loading_ours == 0 then may("kernels", 'require "rille.native"') end
  local module = loaded[name]
  if module ~= nil then return module end
  if loading[name] then
    raise("invalid", raw.format("the module '%s' requires itself", name), "break the cycle of requires")
  end
  if name == "ffi" or name == "jit" or name == "string.buffer" then
    if not core.open_rules() then
      raise("state", raw.format("'%s' is not available in workflow code", name), hidden[name])
    end
    if core.limited() and name ~= "string.buffer" then
      raise("state", raw.format("'%s' is not available under a limit of time", name),
        "the host program has set slice_ms, wall_ms or cpu_ms: what is compiled or native could not be ended")
    end
    may("kernels", raw.format("require %q", name))  -- each reaches the memory of the process
    loaded[name] = core.raw_require(name)
    return loaded[name]
  end
  local code = core.find_module(name)  -- raises if not found
  local ours = core.has_stdlib(name) and 1 or 0
  loading[name] = true
  loading_ours = loading_ours + ours
  local ok, result = pcall(code, name)
  loading_ours = loading_ours - ours
  loading[name] = nil
  if not ok then error(result, 0) end
  if result == nil then result = true end
  if type(result) == "table" and core.has_stdlib(name) then
    local own = getmetatable(result) ~= nil
    if not own then strict(name, result) end
    result = sealed(name, result)
  end
  loaded[name] = result
  return result
end

local function with_env(code, where)
  if where ~= nil then
    if type(where) ~= "table" then
      raise("invalid", "load: expected a table as environment, got " .. core.describe(where))
    end
    core.setfenv(code, where)
  end
  return code
end

local function load(chunk, name, mode, where)
  if mode ~= nil and mode ~= "t" and mode ~= "bt" then
    raise("invalid", "load: only source text can be loaded, not bytecode", "leave the mode out")
  end
  if type(chunk) == "function" then
    local parts = {}
    while true do
      local part = chunk()
      if part == nil or part == "" then break end
      parts[#parts + 1] = part
    end
    chunk = table.concat(parts)
  end
  if type(chunk) ~= "string" then raise("invalid", "load: expected source text, got " .. core.describe(chunk)) end
  local code, err = core.compile(chunk, name or "=(load)")
  if not code then return nil, err end
  return with_env(code, where)
end

local function loadfile(path, mode, where)
  local source = core.read_source(path)
  return load(source, "@" .. path, mode, where)
end

local function dofile(path)
  local code, err = loadfile(path)
  if not code then error(err, 0) end
  return code()
end

store.require, store.load, store.loadstring, store.loadfile, store.dofile = require, load, load, loadfile, dofile

-- The module table ----------------------------------------------------------------------------------------------------

local computed = {}
local by_a_device = { zeros = "", ones = "", full = "", rand = "", randn = "", randint = "", arange = "", linspace = "",
  eye = "", tensor = "", kernel = "" }
setmetatable(words, {
  __index = function(_, key)
    local f = computed[key]
    if f then return f() end
    if type(key) == "string" and core.has_stdlib("rille." .. key) then
      local module = require("rille." .. key)
      rawset(words, key, module)
      return module
    end
    local names = names_of(words)
    for k in raw.next, computed do names[#names + 1] = k end
    for _, k in ipairs(core.stdlib_names()) do names[#names + 1] = k end
    raise("invalid", raw.format("rille.%s does not exist", raw.tostring(key)),
      by_a_device[key] and "a device makes them: rille.device():" .. key
      or core.did_you_mean(raw.tostring(key), names))
  end,
})

words.null, core.words = core.null, words
core.loaded, core.computed, core.store, core.raw_pairs = loaded, computed, store, function(t) return raw.next, t end
core.tostring, core.names_of, core.require = tostring, names_of, require

-- Runs a fiber in states without flow verbs: records where an error came from while the stack still exists.
local function fiber_body(fn, ...)
  return raise_or_return(core.xpcall(fn, core.trace, ...))
end

return env, rille, shim, fiber_body
)lua";

}  // namespace rille::host
