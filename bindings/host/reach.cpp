// Lua code for io and os with grants: each function that accesses something outside of the Lua state calls core.may
// first and opens the path that core.may returns. Returns { io =, os = }: functions that change a copy of Lua's
// library.
#include "bindings/host/prelude.hpp"

namespace rille::host {

const char* const reach_source = R"lua(
local core = ...
local may, next, type, tostring, setmetatable = core.may, next, type, tostring, setmetatable

local function copy(t)
  local out = {}
  for k, v in next, t do out[k] = v end
  return out
end

-- What is no path is left to Lua's own function, which raises.
local function allowed(how, path, mode)
  if type(path) == "number" then path = tostring(path) end
  return type(path) == "string" and may(how, path, mode) or path
end

local reach = {}

function reach.io(io)
  local raw = copy(io)
  -- The standard streams are files of the process, granted by name. `own`: the script has replaced the stream.
  local own, streams = {}, {
    stdin = { "read", "/dev/stdin" }, stdout = { "write", "/dev/stdout" }, stderr = { "write", "/dev/stderr" },
    input = { "read", "/dev/stdin" }, output = { "write", "/dev/stdout" },
  }
  local function stream(name)
    if not own[name] then may(streams[name][1], streams[name][2]) end
  end
  local function setter(name, mode)
    return function(file)
      if file == nil then
        stream(name)
        return raw[name]()
      end
      local set = raw[name](type(file) == "userdata" and file or allowed("open", file, mode))
      own[name] = true
      return set
    end
  end
  local function on(name, f)
    return function(...)
      stream(name)
      return f(...)
    end
  end
  function io.open(path, mode)
    if mode ~= nil and type(mode) ~= "string" then return raw.open(path, mode) end
    return raw.open(allowed("open", path, mode), mode)
  end
  function io.lines(path, ...)
    if path == nil then stream "input" end
    return raw.lines(allowed("open", path), ...)
  end
  function io.close(file)
    if file ~= nil then return raw.close(file) end
    stream "output"
    return raw.close()
  end
  function io.popen(...)
    may("process", "io.popen")
    return raw.popen(...)
  end
  function io.tmpfile()
    may("write", "/tmp/a file of io.tmpfile")
    return raw.tmpfile()
  end
  io.input, io.output = setter("input", "r"), setter("output", "w")
  io.read, io.write, io.flush = on("input", raw.read), on("output", raw.write), on("output", raw.flush)
  io.stdin, io.stdout, io.stderr = nil, nil, nil
  return setmetatable(io, { __index = function(_, name)
    if streams[name] then
      stream(name)
      return raw[name]
    end
  end })
end

function reach.os(os)
  local raw = copy(os)
  function os.execute(...)
    may("process", "os.execute")
    return raw.execute(...)
  end
  function os.getenv(name)
    if type(name) == "string" then may("env", name) end
    return raw.getenv(name)
  end
  function os.remove(path) return raw.remove(allowed("entry", path)) end
  function os.rename(from, to) return raw.rename(allowed("entry", from), allowed("entry", to)) end
  function os.tmpname()
    may("write", "/tmp/a file of os.tmpname")
    return raw.tmpname()
  end
  return os
end

return reach
)lua";

}  // namespace rille::host
