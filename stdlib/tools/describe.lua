--- Describes a name as plain text, for `help()`. Works on an index of `rille.tools.luacats`.

---@class rille.tools.describe
local M = {}

local columns = 80

-- Appends the text to `out`, wrapped. `first`: what the first line starts with instead of the indent.
local function wrap(out, indent, text, first)
  local line, empty = first or indent, true
  for word in text:gmatch("%S+") do
    if not empty and #line + 1 + #word >= columns then
      out[#out + 1] = line
      line, empty = indent, true
    end
    line, empty = empty and line .. word or line .. " " .. word, false
  end
  if line:find("%S") then out[#out + 1] = (line:gsub("%s+$", "")) end
end

local function paragraphs(out, text)
  for paragraph in (text .. "\n\n"):gmatch("(.-)\n%s*\n") do
    if paragraph:find("%S") then
      wrap(out, "  ", paragraph)
      out[#out + 1] = ""
    end
  end
end

local function named(out, title, list)
  if #list == 0 then return end
  local width = 0
  for _, item in ipairs(list) do width = math.max(width, #item.name + (item.optional and 1 or 0)) end
  out[#out + 1] = "  " .. title
  for _, item in ipairs(list) do
    local name = item.name .. (item.optional and "?" or "")
    wrap(out, (" "):rep(6 + width), item.text, "    " .. name .. (" "):rep(width - #name) .. "  " .. item.type .. "  ")
  end
  out[#out + 1] = ""
end

-- Appends the fields of the options tables among the parameters in `list`.
local function tables(out, index, list)
  local told = false
  for _, item in ipairs(list) do
    local entry = index.entries[(item.type:gsub("%?$", ""))]
    if entry and entry.kind ~= "function" and #(entry.fields or {}) > 0 and not item.type:find("^%u%w*$") then
      out[#out + 1] = "  the fields of " .. item.name .. ": ?" .. entry.name
      told = true
    end
  end
  if told then out[#out + 1] = "" end
end

local function errors(out, list)
  if #list == 0 then return end
  out[#out + 1] = "  errors"
  for _, e in ipairs(list) do wrap(out, "    ", e.kind .. ": " .. e.text) end
  out[#out + 1] = ""
end

local function examples(out, list)
  for _, example in ipairs(list or {}) do
    for line in example.text:gsub("%s+$", ""):gmatch("[^\n]+") do out[#out + 1] = "    " .. line end
    out[#out + 1] = ""
  end
end

local function members(out, index, owner)
  for _, name in ipairs(index.order) do
    local entry = index.entries[name]
    if entry.kind == "function" and entry.owner == owner then
      out[#out + 1] = "  " .. name
      wrap(out, "      ", entry.summary)
    end
  end
end

--- Finds an entry by a name such as "rille.rent", "rent", "Instance:call" or "Instance.call".
---@param index table from `luacats.index`
---@param name string the name
---@return table? entry nil for an unknown name
---@mark deterministic
function M.find(index, name)
  for _, candidate in ipairs { name, name:gsub("%.([%w_]+)$", ":%1"), "rille." .. name } do
    local entry = index.entries[candidate] or index.modules[candidate]
    if entry then return entry end
  end
  for _, known in ipairs(index.order) do
    if index.entries[known].short == name then return index.entries[known] end
  end
end

-- The other functions that a short name may mean: "?tensor" is of Buffer and of Device.
local function add_namesakes(out, index, name, entry)
  local others = {}
  for _, known in ipairs(index.order) do
    local other = index.entries[known]
    if other.short == name and other ~= entry then others[#others + 1] = "?" .. known end
  end
  if entry.short ~= name or #others == 0 then return end
  out[#out + 1] = "also: " .. table.concat(others, ", ", 1, math.min(#others, 8))
end

--- Describes a function, an object, a set of options or a module.
---@param index table from `luacats.index`
---@param name string as in "rille.rent", "rent" or "Instance:call"
---@return string? text nil for an unknown name
---@mark deterministic
function M.describe(index, name)
  local entry = M.find(index, name)
  if not entry then return nil end
  local out = {}
  if entry.kind == "function" then
    out[1] = entry.signature .. "  -- " .. (entry.mark or "unmarked")
    paragraphs(out, entry.text)
    named(out, "parameters", entry.params)
    tables(out, index, entry.params)
    for _, r in ipairs(entry.returns) do wrap(out, "  ", "returns " .. r.type .. "  " .. r.text) end
    if #entry.returns > 0 then out[#out + 1] = "" end
    errors(out, entry.errors)
  else
    out[1] = entry.name .. (entry.type and " = " .. entry.type or "")
    paragraphs(out, entry.text or "")
    named(out, "fields", entry.fields or {})
    members(out, index, entry.name)
  end
  examples(out, entry.examples)
  add_namesakes(out, index, name, entry)
  return (table.concat(out, "\n"):gsub("%s+$", ""))
end

return M
