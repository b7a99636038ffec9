--- A value as the prompt shows it.

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

local depth_of_parts = 3

-- "Linear: 20 parameters" of a model or layer; nil for other values.
local function title_of(value)
  if type(value) ~= "table" or getmetatable(value) == nil then return nil end
  local fine, text = pcall(tostring, value)
  return fine and text:find("^%u%w*: %d+ parameters$") and text or nil
end

local function is_tensor(value) return require("rille.native").kind(value) == "tensor" end

-- The layers and tensors of a model, a line for each; layers that are alike and follow each other take one.
local function add_parts(lines, module, indent, depth)
  local names, tensors, parts = {}, {}, {}
  for key, value in pairs(module) do
    if type(value) == "table" and getmetatable(value) == nil then
      for i, part in ipairs(value) do
        if title_of(part) then parts[#parts + 1] = { name = key .. "." .. i, list = key, at = i, value = part } end
      end
    elseif title_of(value) then
      parts[#parts + 1] = { name = tostring(key), value = value }
    elseif is_tensor(value) then
      names[#names + 1] = tostring(key)
      tensors[tostring(key)] = value
    end
  end
  table.sort(names)
  for i, name in ipairs(names) do
    names[i] = ("%s %s[%s]"):format(name, tensors[name].dtype, table.concat(tensors[name]:shape(), ", "))
  end
  if #names > 0 then lines[#lines] = lines[#lines] .. "  " .. table.concat(names, ", ") end
  if depth == 0 then return end
  local i = 1
  while i <= #parts do
    local part, last = parts[i], i
    local title = title_of(part.value)
    local function is_alike(other)
      return other and part.list and other.list == part.list and title_of(other.value) == title
    end
    while is_alike(parts[last + 1]) do last = last + 1 end
    local name = last > i and ("%s.%d to %d, each"):format(part.list, part.at, parts[last].at) or part.name
    lines[#lines + 1] = ("%s%s  %s"):format(indent, name, title)
    add_parts(lines, part.value, indent .. "  ", depth - 1)
    i = last + 1
  end
end

--- A value as the prompt shows it at the end of an entry: as `show`; models with their layers and the shapes of their
--- tensors.
---@param value any
---@return string
function M.result(value)
  local title = title_of(value)
  if not title then return show(value) end
  local lines = { title }
  add_parts(lines, value, "  ", depth_of_parts)
  return table.concat(lines, "\n")
end

M.show = show

return M
