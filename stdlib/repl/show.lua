--- A value as the prompt shows it.

local M = {}

local show = require "rille.inspect"

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

--- A value as the prompt shows it at the end of an entry: as `rille.inspect`; models with their layers and the shapes
--- of their tensors.
---@param value any the value
---@return string text
---@mark ephemeral
function M.result(value)
  local title = title_of(value)
  if not title then return show(value) end
  local lines = { title }
  add_parts(lines, value, "  ", depth_of_parts)
  return table.concat(lines, "\n")
end

--- The same without leaving anything out.
---@param value any the value
---@return string text
---@mark ephemeral
function M.whole(value)
  if type(value) == "string" then return value end
  return title_of(value) and M.result(value) or show(value, { whole = true })
end

--- The lines of a text that fit on the screen, and how to see the rest.
---@param text string of several lines
---@param rows integer of the screen; 0: it has no end
---@return string text
---@mark deterministic
function M.fitting(text, rows)
  local _, breaks = text:gsub("\n", "")
  local most = rows - 3  -- the next prompt, its hint, and the line about the rest
  if rows == 0 or breaks < most or most < 1 then return text end
  local at = 0
  for _ = 1, most do at = text:find("\n", at + 1, true) end
  return ("%s\n... %d more lines: :more shows them"):format(text:sub(1, at - 1), breaks + 1 - most)
end

M.show = show

return M
