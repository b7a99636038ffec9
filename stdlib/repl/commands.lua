--- The commands of the prompt, ":time" and its like. Each takes what stands behind its name.

local M = {}

local units = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } }

-- 0.00123 s as "1.23 ms".
local function time_text(ns)
  for _, unit in ipairs(units) do
    if ns >= unit[1] then return ("%.3g %s"):format(ns / unit[1], unit[2]) end
  end
  return ("%.3g ns"):format(ns)
end

local function invalid(message, hint)
  require("rille").error { kind = "invalid", message = message, hint = hint }
end

local function kind_of(value)
  local kind = require("rille.native").kind(value)
  return kind or type(value)
end

local summaries = {
  help = ":help             this list; ?name tells about a name, ??name shows its source",
  time = ":time CODE        runs the code and tells how long it took",
  bench = ":bench CODE       runs the code again and again for a second, and tells the spread",
  load = ":load FILE        runs a file; its local variables stay",
  reload = ":reload MODULE    reads a module of yours again; variables that hold it get the new one",
  edit = ":edit [N | FILE]  opens $EDITOR with entry N, the last one, or a file; then runs what you saved",
  sh = ":sh COMMAND       runs a command of the shell (also !COMMAND)",
  who = ":who              the session's variables",
  more = ":more [CODE]      the whole of the last value, or of the code's, in $PAGER",
  history = ":history [TEXT]   earlier entries, those with the text",
  apropos = ":apropos WORD     names whose description has the word",
  leases = ":leases           what is rented (rille leases)",
  runs = ":runs             the runs of this home (rille ps)",
  suspend = ":suspend          leaves; `rille resume RUN` brings back what is rented, and the variables",
  quit = ":quit             leaves, and releases what is rented (also Ctrl-D)",
}
local order = { "help", "time", "bench", "load", "reload", "edit", "sh", "who", "more", "history", "apropos", "leases",
  "runs", "suspend", "quit" }

-- One line about a variable's value.
local function who_text(value)
  if type(value) == "table" then
    local count = 0
    for _ in pairs(value) do count = count + 1 end
    local text = getmetatable(value) ~= nil and tostring(value) or ""
    if text ~= "" and not text:find("^table") then return text:match("[^\n]*") end
    return ("table with %d %s"):format(count, count == 1 and "value" or "values")
  end
  if type(value) == "string" then return ("string of %d bytes"):format(#value) end
  if kind_of(value) == "tensor" then
    return ("tensor %s[%s] %s"):format(value.dtype, table.concat(value:shape(), ", "), value.device)
  end
  return type(value) == "userdata" and tostring(value):match("[^\n]*") or type(value) .. " "
    .. (type(value) == "function" and "" or tostring(value))
end

--- Makes the commands of a session.
---@param session table of rille.repl: `primitives`, `index`, `run`, `enter`, `help`
---@return table commands by name
---@mark ephemeral
function M.new(session)
  local p = session.primitives
  local commands = {}

  local function compiled(code, chunk)
    if code == "" then invalid("there is no code", ":time rille.device():randn { 1000, 1000 }:sum()") end
    local fn, problem = p.compile(code, chunk or "=entry " .. session.number)
    if not fn then require("rille").error(problem) end
    return fn
  end

  -- Runs the code, and waits for what it still computes: on the devices of its results and of the session's variables.
  local function run_whole(fn)
    local function wait(...)
      local devices = {}
      local function note(value)
        if kind_of(value) == "tensor" then devices[value.device] = true
        elseif p.class(value) == "Device" then devices[value.name] = true end
      end
      for i = 1, select("#", ...) do note((select(i, ...))) end
      for _, name in ipairs(session.own_names()) do note(p.step(p.variables(), name)) end
      for device in pairs(devices) do require("rille").device(device):synchronize() end
      return ...
    end
    return wait(fn())
  end

  function commands.help()
    for _, name in ipairs(order) do print(summaries[name]) end
  end

  function commands.time(code)
    local fn, began = compiled(code), p.now_ns()
    local function told(...)
      print(time_text(p.now_ns() - began))
      return ...
    end
    return told(run_whole(fn))
  end

  function commands.bench(code)
    local fn = compiled(code)
    run_whole(fn)  -- the first run compiles and fills caches
    local begin, times, sum = p.now_ns(), {}, 0
    repeat
      local began = p.now_ns()
      run_whole(fn)
      times[#times + 1] = p.now_ns() - began
      sum = sum + times[#times]
    until #times >= 3 and (p.now_ns() - begin > 1e9 or #times >= 1e5)
    table.sort(times)
    local mean, squares = sum / #times, 0
    for _, t in ipairs(times) do squares = squares + (t - mean) ^ 2 end
    print(("%s +- %s a run (%d runs; least %s, median %s, most %s)"):format(time_text(mean),
      time_text(math.sqrt(squares / #times)), #times, time_text(times[1]), time_text(times[math.ceil(#times / 2)]),
      time_text(times[#times])))
  end

  function commands.load(path)
    if path == "" then invalid(":load: which file?", ":load train.lua") end
    local source, why = p.read_file(path)
    if not source then invalid(":load: " .. why, "paths are relative to " .. p.directory()) end
    return compiled(source, "@" .. path)()
  end

  function commands.reload(name)
    if name == "" then invalid(":reload: which module?", ":reload model reads model.lua again") end
    local old = p.loaded[name]
    if old == nil then invalid((":reload: the module '%s' is not loaded"):format(name), 'require "' .. name .. '"') end
    p.loaded[name] = nil
    p.forget(name)
    local fine, new = pcall(require, name)
    if not fine then
      p.loaded[name] = old
      require("rille").error(new)
    end
    local renewed = {}
    for _, variable in ipairs(session.own_names()) do
      if rawequal(p.step(p.variables(), variable), old) then
        p.set(variable, new)
        renewed[#renewed + 1] = variable
      end
    end
    print("read " .. name .. " again" .. (#renewed > 0 and "; also in " .. table.concat(renewed, ", ") or ""))
  end

  function commands.edit(which)
    local number = which == "" and session.number - 1 or tonumber(which)
    local text = number and p.entry(number)
    if number and not text then invalid((":edit: there is no entry %d in this session"):format(number)) end
    local edited = p.edit(text or "", not number and which or "")
    if edited == nil then return end
    if number then p.offer(edited)
    else return commands.load(which) end
  end

  function commands.sh(command)
    if command == "" then invalid(":sh: which command?", ":sh ls") end
    local code = p.shell { "/bin/sh", "-c", command }
    if code ~= 0 then print(("exit code %d"):format(code)) end
  end

  function commands.leases() p.shell { p.program(), "leases" } end
  function commands.runs() p.shell { p.program(), "ps" } end

  function commands.who()
    local names = {}
    for _, name in ipairs(session.own_names()) do
      if not name:find("^_") then names[#names + 1] = name end
    end
    local width = 0
    for _, name in ipairs(names) do width = math.max(width, #name) end
    for _, name in ipairs(names) do
      print(name .. (" "):rep(width - #name) .. "  " .. who_text(p.step(p.variables(), name)))
    end
    if #names == 0 then print("there are no variables yet") end
  end

  function commands.more(code)
    local value = p.step(p.variables(), "_")
    if code ~= "" then value = compiled(code)() end
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(require("rille.repl.show").whole(value), "\n")
    file:close()
    p.shell { "/bin/sh", "-c", 'if [ -n "$PAGER" ]; then exec $PAGER "$1"; fi; command -v less >/dev/null && '
      .. 'exec less -RFX "$1"; exec more "$1"', "sh", path }
    os.remove(path)
  end

  function commands.history(text)
    for _, entry in ipairs(p.history(text, 50)) do print(entry) end
  end

  function commands.apropos(word)
    if word == "" then invalid(":apropos: which word?", ":apropos checkpoint") end
    require("rille.repl").apropos(session.index(), word, p.columns())
  end

  function commands.suspend()
    for name, why in pairs(session.keeper.save()) do print(("not kept: %s: %s"):format(name, why)) end
    p.suspend()
  end
  function commands.quit() end  -- the prompt ends before it comes to this

  return commands
end

return M
