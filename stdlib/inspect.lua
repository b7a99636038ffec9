-- rille.inspect: a value as text, as the prompt and `print` show it.

-- Of a host program's state without tensors there is none.
local has_tensors, native = pcall(require, "rille.native")

local line_max = 90
local brief = { depth = 5, items = 40, text = 400 }
local whole = { depth = 100, items = math.huge, text = math.huge }  -- deeper, tables would overflow the stack

local show

local function is_name(key)
  return type(key) == "string" and key:match("^[%a_][%w_]*$") ~= nil
end

local function show_table(t, depth, seen, most)
  if seen[t] then return "<cycle>" end
  if getmetatable(t) ~= nil then  -- an object: show the text of its __tostring
    local text = tostring(t)
    if text ~= "table" and not text:find("^table: ") then return text end
  end
  if depth >= most.depth then return "{...}" end
  seen[t] = true
  local parts, count, listed = {}, 0, #t
  for i = 1, listed do
    count = count + 1
    if count > most.items then break end
    parts[#parts + 1] = show(t[i], depth + 1, seen, most)
  end
  for key, value in pairs(t) do
    if not (type(key) == "number" and key >= 1 and key <= listed and key % 1 == 0) then
      count = count + 1
      if count > most.items then break end
      local name = is_name(key) and key or "[" .. show(key, depth + 1, seen, most) .. "]"
      parts[#parts + 1] = name .. " = " .. show(value, depth + 1, seen, most)
    end
  end
  if count > most.items then
    local all = 0
    for _ in pairs(t) do all = all + 1 end
    parts[#parts + 1] = ("... %d more"):format(all - most.items)
  end
  seen[t] = nil
  local line = table.concat(parts, ", ")
  if #line <= line_max then return #parts == 0 and "{}" or "{ " .. line .. " }" end
  local indent = string.rep("  ", depth + 1)
  return "{\n" .. indent .. table.concat(parts, ",\n" .. indent) .. "\n" .. string.rep("  ", depth) .. "}"
end

function show(value, depth, seen, most)
  if type(value) == "string" then
    local text = #value > most.text and value:sub(1, most.text) .. "..." or value
    return (string.format("%q", text):gsub("\\\n", "\\n"))  -- the parentheses drop gsub's second result
  end
  if type(value) == "table" then return show_table(value, depth, seen, most) end
  return tostring(value)
end

---Returns a value as text, as the prompt shows it: tables with their contents in Lua's notation, strings quoted,
---objects by their own text, a tensor with its values.
---
---Keys are sorted. After 40 elements of a table, 5 levels or 400 characters of a string, the rest is left out, unless
---`whole` is true. `print` shows tables in this way. For a file or another program use `rille.json.encode`.
---@param value any what to show
---@param options? { whole: boolean } true: leaves nothing out, but the middle of large tensors
---@return string text
---@mark deterministic
---@async
---@example
--- print("result: " .. rille.inspect { loss = 2.3, steps = { 100, 200 } })
local function inspect(value, options)
  if options ~= nil and has_tensors then native.check_options(options, "rille.inspect", { "whole" }) end
  if type(value) == "userdata" and has_tensors and native.kind(value) then return native.text(value) end
  return show(value, 0, {}, options and options.whole and whole or brief)
end

return inspect
