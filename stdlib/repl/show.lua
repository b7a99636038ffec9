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

M.show = show

return M
