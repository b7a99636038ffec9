--- The prompt's loop: reads entries, runs each in a scope that Ctrl-C can cancel alone, and shows the results. Loaded
--- by the command only; `primitives` is its C++ side (bindings/cli/prompt/primitives.cpp).

local M = {}

local habits = require "rille.repl.habits"
local shown = require "rille.repl.show"

local function show_results(results, rows)
  for i = 1, results.n do
    local value = results[i]
    if type(value) == "userdata" then
      print(value)  -- tensors and lists of offers print their contents; this may suspend the fiber
    else
      print(shown.fitting(shown.result(value), rows))
    end
  end
end

-- Splits the results of `xpcall` into whether the call succeeded, and a list of the rest, which may contain nils.
local function split(fine, ...) return fine, { n = select("#", ...), ... } end

-- Returns the class of a session variable's value, as named in annotations: from the object's metatable, or from the
-- first word of a table's tostring ("Cluster 'w' ..").
local function class_of(value, index, primitives)
  local name = primitives.class(value)
  if type(value) == "table" then
    name = tostring(value):match("^%u%w*")
    if not (name and index.entries[name]) and type(value.parameters) == "function" then name = "Module" end
  end
  return name and (index.entries[name] or index.modules[name]) and name or nil
end

-- Replaces a variable of the session by its class: with an Instance in `box`, "box:call" becomes "Instance:call".
local function of_variable(name, index, primitives)
  local variable, rest = name:match("^([%a_][%w_]*)(.*)$")
  if not variable then return nil end
  local fine, value = pcall(function() return _G[variable] end)
  local class = fine and value ~= nil and select(2, pcall(class_of, value, index, primitives))
  return type(class) == "string" and class .. rest or nil
end

-- A "did you mean", or where all names are listed.
local function nearest_of(name, names)
  local near = require("rille.native").did_you_mean(name, names)
  return near ~= "" and near or ":help lists them"
end

-- The first letter of a name's last part: "t" of "rille.train".
local function initial(name) return name:match("([%w_])[%w_]*$") end

-- The name most like `name`: of names that begin alike, if there are any ("rille.trian" is not "rille.print").
local function nearest(name, index)
  local names, alike = {}, {}
  local function add(known)
    names[#names + 1] = known
    if initial(known) == initial(name) then alike[#alike + 1] = known end
  end
  for _, known in ipairs(index.order) do
    add(known)
    if index.entries[known].short then add(index.entries[known].short) end
  end
  for known in pairs(index.modules) do add(known) end
  local native = require("rille.native")
  local near = native.did_you_mean(name, alike)
  return near ~= "" and near or native.did_you_mean(name, names)
end

-- The source of an annotated function, or of a function of the user's that a variable holds.
local function source_of(session, name, entry)
  local index = session.index()
  if entry and entry.kind == "function" then
    for _, module in ipairs(session.primitives.modules()) do
      if module.file == entry.file and not module.file:find("meta") then
        local lines, number = {}, 0
        for line in (module.source .. "\n"):gmatch("(.-)\n") do
          number = number + 1
          if number >= entry.line then
            lines[#lines + 1] = line
            if line:find("^end") then return table.concat(lines, "\n") end
          end
        end
      end
    end
    return nil, name .. " is written in C++: its annotations are all there is"
  end
  local fine, value = pcall(function() return session.primitives.step(session.primitives.variables(), name) end)
  if fine and type(value) == "function" then return session.primitives.source(value) end
  return nil, index.entries[name] and name .. " has no source of its own" or nil
end

-- An error with a hint for people who come from another prompt, if there is one.
local function with_habit(problem, hint)
  if not hint then return problem end
  return { kind = problem.kind, message = problem.message, hint = hint, traceback = problem.traceback }
end

-- Prints a name and what it is, wrapped between words at the terminal's width.
local function print_row(name, width, text, columns)
  local line, indent = ("%-" .. width .. "s"):format(name), (" "):rep(width)
  for word in text:gmatch("%S+") do
    if #line + 1 + #word > columns and line ~= indent then
      print(line)
      line = indent
    end
    line = line .. " " .. word
  end
  print(line)
end

-- All annotated entries whose name or summary has the word.
local function apropos(index, word, columns)
  local shown = 0
  word = word:lower()
  for _, name in ipairs(index.order) do
    local entry = index.entries[name]
    local summary = entry.summary or ""
    local found = name:lower():find(word, 1, true) or summary:lower():find(word, 1, true)
    if found and summary ~= "" and not name:find("%.tools%.") then
      print_row(name, 32, summary, columns)
      shown = shown + 1
    end
  end
  if shown == 0 then print("nothing mentions '" .. word .. "'") end
end

-- Lists what there is: verbs by name, then modules.
local function list_all(index, columns)
  local function row(name, summary) print_row(name, 20, summary or "", columns) end
  for _, known in ipairs(index.order) do
    local entry = index.entries[known]
    if entry.kind == "function" and known:find("^rille%.[%w_]+$") then row(known, entry.summary) end
  end
  local modules = {}
  for name, module in pairs(index.modules) do
    if name:find("^rille%.[%w_]+$") and not index.entries[name] and module.summary ~= "" then
      modules[#modules + 1] = name
    end
  end
  table.sort(modules)
  print("modules")
  for _, name in ipairs(modules) do row(name, index.modules[name].summary) end
  print_row("More", 4, "about each: ?rille.rent; its source: ??rille.nn.mlp; of objects: ?Instance, or of a variable: "
    .. "?box, ?box:call. :apropos WORD searches, :help lists the commands of the prompt", columns)
end

-- Makes the function help: help "rille.rent", help "rent", help "box:call", help(). The text comes from the
-- annotations embedded with the modules.
local function help_of(session)
  return function(name, with_source)
    if name ~= nil and type(name) ~= "string" then
      require("rille").error { kind = "invalid", message = "help: expected a name, got " .. type(name),
        hint = 'help "rille.rent", or ?rille.rent' }
    end
    local index = session.index()
    if not name or name == "" then return list_all(index, session.primitives.columns()) end
    local describe = require "rille.tools.describe"
    local meant = of_variable(name, index, session.primitives)
    if with_source then
      local source, why = source_of(session, name, describe.find(index, meant or name))
      if source or why then return print(source or why) end
    end
    local text = meant and describe.describe(index, meant) or describe.describe(index, name)
      or require("rille.repl.builtins").describe(name)
    if text then return print(text) end
    local value = session.value_of(name)
    if value ~= nil then return print(name .. " is a " .. type(value) .. ": " .. shown.result(value)) end
    local near = nearest(meant or name, index)
    print("nothing is called '" .. (meant or name) .. "'; " .. (near ~= "" and near or "help() lists what there is"))
  end
end

M.apropos = apropos

-- The commands' names, for messages and completion.
local function names_of(commands)
  local names = {}
  for name in pairs(commands) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- Reads and runs entries until `primitives.read` returns nil.
---@param primitives table the command's side of the REPL
---@mark ephemeral
function M.main(primitives)
  local index
  local session = { primitives = primitives, number = 0 }
  function session.index()
    index = index or require("rille.tools.luacats").index(primitives.modules())
    return index
  end
  function session.class_of(value)
    local fine, class = pcall(class_of, value, session.index(), primitives)
    return fine and class or nil
  end
  -- The value of "a.b.c", read without running code; nil if there is none.
  function session.value_of(name)
    local value, path = primitives.variables(), nil
    for field in name:gmatch("[%a_][%w_]*") do
      value = primitives.step(value, field, path)
      path = path and path .. "." .. field or field
    end
    return name:find("^[%a_][%w_%.]*$") and value or nil
  end
  session.help = help_of(session)
  primitives.set("help", session.help)
  session.given = {}  -- the names that are there before the first entry
  for _, name in ipairs(primitives.names(primitives.variables())) do session.given[name] = true end
  -- The variables of the session, sorted.
  function session.own_names()
    local names, seen = {}, {}
    for _, name in ipairs(primitives.names(primitives.variables())) do
      if not session.given[name] and not seen[name] then
        seen[name] = true
        names[#names + 1] = name
      end
    end
    table.sort(names)
    return names
  end
  session.keeper = require("rille.repl.keep").new(session)
  local completer = require("rille.repl.complete").new(primitives, session.index, session.class_of)
  local commands = require("rille.repl.commands").new(session)
  completer.commands = names_of(commands)
  completer.lua_names = require("rille.repl.builtins").names()
  primitives.on_edit(completer.complete, completer.hint)

  -- Runs `fn` in a scope of its own and shows what it returns, unless `silent`. Gives whether it succeeded.
  function session.run(fn, silent)
    local scope = primitives.enter()
    local fine, results = split(xpcall(fn, primitives.trace))
    if fine then
      if results.n > 0 then
        primitives.set("_", results[1])
        primitives.set("_" .. session.number, results[1])
      end
      if not silent then
        local printed, why = xpcall(show_results, primitives.trace, results, primitives.rows())
        if not printed then fine, results = false, { why } end
      end
    end
    primitives.leave(scope)
    if not fine then
      local problem = primitives.error(results[1])
      local unset = problem.message:match("^the global '([%w_]+)' is not set$")
      primitives.set("_err", problem)
      primitives.report(unset and with_habit(problem, habits.of_name(unset)) or results[1])
    end
    return fine
  end

  -- Compiles and runs an entry's text.
  function session.enter(source)
    local silent = source:find(";%s*$") ~= nil
    local fn, problem = primitives.compile((source:gsub("[;%s]+$", "")), "=entry " .. session.number)
    if not fn then
      problem = primitives.error(problem)
      primitives.set("_err", problem)
      return primitives.report(with_habit(problem, habits.of_syntax(source, problem.message)))
    end
    return session.run(fn, silent)
  end

  local restored, why = xpcall(session.keeper.restore, primitives.trace)
  if not restored then primitives.report(why) end
  while true do
    local source = primitives.read(session.number + 1)
    if source == nil then return nil end
    session.number = session.number + 1
    local command, rest = source:match("^:(%a*)%s*(.*)$")
    local asked = source:match("^([%a_][%w_%.:]*)%?%??$")  -- as in IPython: x? and x??
    if source == "help" or source == "?" then
      session.run(session.help, true)
    elseif asked then
      session.run(function() session.help(asked, source:find("%?%?$") ~= nil) end, true)
    elseif source:find("^%?") then
      session.run(function() session.help(source:match("^%?%?*%s*(.-)%s*$"), source:find("^%?%?") ~= nil) end, true)
    elseif source:find("^!") then
      session.run(function() commands.sh(source:match("^!%s*(.*)$")) end, true)
    elseif command and commands[command] then
      session.run(function() return commands[command](rest) end)
    elseif command then
      print(("there is no command ':%s'; %s"):format(command, nearest_of(command, names_of(commands))))
    else
      session.enter(source:match("^=?(.*)$"))
    end
    local kept, problem = pcall(session.keeper.note, source)
    if not kept then primitives.report(problem) end
    primitives.done()
  end
end

return M
