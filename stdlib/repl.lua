--- The REPL's loop: reads entries, runs each in a scope that Ctrl-C can cancel alone, and shows the results. Loaded by
--- the command only; `primitives` is its C++ side (bindings/cli/repl.cpp).

local M = {}

local depth_max, items_max, text_max = 5, 40, 400

local function is_name(key)
  return type(key) == "string" and key:match("^[%a_][%w_]*$") ~= nil
end

local show

local function show_table(t, depth, seen)
  if seen[t] then return "<cycle>" end
  if getmetatable(t) ~= nil then  -- an object: show the text of its __tostring
    local text = tostring(t)
    if not text:find("^table: ") then return text end
  end
  if depth >= depth_max then return "{...}" end
  seen[t] = true
  local parts, count, listed = {}, 0, #t
  for i = 1, listed do
    count = count + 1
    if count > items_max then break end
    parts[#parts + 1] = show(t[i], depth + 1, seen)
  end
  for key, value in pairs(t) do
    if not (type(key) == "number" and key >= 1 and key <= listed and key % 1 == 0) then
      count = count + 1
      if count > items_max then break end
      local name = is_name(key) and key or "[" .. show(key, depth + 1, seen) .. "]"
      parts[#parts + 1] = name .. " = " .. show(value, depth + 1, seen)
    end
  end
  if count > items_max then parts[#parts + 1] = "... more" end
  seen[t] = nil
  local line = table.concat(parts, ", ")
  if #line <= 90 then return #parts == 0 and "{}" or "{ " .. line .. " }" end
  local indent = string.rep("  ", depth + 1)
  return "{\n" .. indent .. table.concat(parts, ",\n" .. indent) .. "\n" .. string.rep("  ", depth) .. "}"
end

--- A value as Lua source: strings quoted, keys sorted, cycles and long tables cut.
---@param value any
---@return string
function show(value, depth, seen)
  if type(value) == "string" then
    local text = #value > text_max and value:sub(1, text_max) .. "..." or value
    return (string.format("%q", text):gsub("\\\n", "\\n"))  -- the parentheses drop gsub's second result
  end
  if type(value) == "table" then return show_table(value, depth or 0, seen or {}) end
  return tostring(value)
end

M.show = show

local function show_results(results)
  for i = 1, results.n do
    local value = results[i]
    if type(value) == "userdata" then
      print(value)  -- tensors and lists of offers print their contents; this may suspend the fiber
    else
      print(show(value))
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

local function nearest(name, index)
  local names = {}
  for _, known in ipairs(index.order) do
    names[#names + 1] = known
    if index.entries[known].short then names[#names + 1] = index.entries[known].short end
  end
  return require("rille.native").did_you_mean(name, names)
end

-- Makes the function help: help "rille.rent", help "rent", help "box:call", help(). The text comes from the
-- annotations embedded with the modules.
local function help_of(primitives)
  local index
  return function(name)
    if name ~= nil and type(name) ~= "string" then
      require("rille").error { kind = "invalid", message = "help: expected a name, got " .. type(name),
        hint = 'help "rille.rent", or ?rille.rent' }
    end
    local luacats = require "rille.tools.luacats"
    index = index or luacats.index(primitives.modules())
    if name and name ~= "" then
      local describe = require("rille.tools.describe").describe
      local meant = of_variable(name, index, primitives)
      local text = meant and describe(index, meant) or describe(index, name)
      if text then return print(text) end
      local near = nearest(meant or name, index)
      print("nothing is called '" .. (meant or name) .. "'; " .. (near ~= "" and near or "help() lists what there is"))
      return
    end
    for _, known in ipairs(index.order) do
      local entry = index.entries[known]
      if entry.kind == "function" and known:find("^rille%.[%w_]+$") then
        print(("%-18s %s"):format(known, entry.summary))
      end
    end
    print('More about each: ?rille.rent; of objects: ?Instance, ?Tensor, or of a variable: ?box, ?box:call')
  end
end

--- Reads and runs entries until `primitives.read` returns nil.
---@param primitives table the command's side of the REPL
---@mark ephemeral
function M.main(primitives)
  primitives.set("help", help_of(primitives))
  while true do
    local source, silent = primitives.read()
    if source == nil then return nil end
    local fn, problem = primitives.compile(source)
    if not fn then
      primitives.report(problem)
    else
      local scope = primitives.enter()
      local fine, results = split(xpcall(fn, primitives.trace))
      primitives.leave(scope)
      if fine then
        if results.n > 0 then primitives.set("_", results[1]) end
        if not silent then
          local shown, why = pcall(show_results, results)
          if not shown then primitives.report(why) end
        end
      else
        primitives.set("_err", results[1])
        primitives.report(results[1])
      end
    end
    primitives.done()
  end
end

return M
