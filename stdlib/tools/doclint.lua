--- Finds gaps in annotations: a public function without a complete contract does not exist.

---@class rille.tools.doclint
local M = {}

local kinds = {}
for kind in ([[invalid config auth quota capacity network timeout cancelled budget state io integrity device memory
  divergence internal denied]]):gmatch("%S+") do kinds[kind] = true end

local function function_problems(f, marks, problem)
  if f.summary == "" then problem("has no summary") end
  if not f.mark then problem("has no ---@mark: durable, deterministic, step-only or ephemeral")
  elseif not marks[f.mark] then problem("has the unknown mark '" .. f.mark .. "'") end
  local documented, taken = {}, {}
  for _, name in ipairs(f.arguments) do taken[name] = true end
  for _, p in ipairs(f.params) do
    documented[p.name] = true
    if not taken[p.name] then problem("documents the parameter '" .. p.name .. "', which it does not take") end
    if p.type == "" or p.text == "" then problem("parameter '" .. p.name .. "' lacks its type or its text") end
  end
  for _, name in ipairs(f.arguments) do
    if not documented[name] then problem("parameter '" .. name .. "' has no ---@param") end
  end
  for _, e in ipairs(f.errors) do
    if not kinds[e.kind] then problem("names the unknown error kind '" .. e.kind .. "'") end
    if e.text == "" then problem("does not say when it raises '" .. e.kind .. "'") end
  end
end

--- Lists every problem of an index as "file:line: name problem", in the order of the files.
---@param index table from `luacats.index`
---@param marks table the known marks, `luacats.marks`
---@return table problems list of strings, empty if there are none
---@mark deterministic
function M.problems(index, marks)
  local list, has = {}, {}
  for _, name in ipairs(index.order) do
    local entry = index.entries[name]
    if entry.kind == "function" then has[entry.module] = true end
  end
  for name, module in pairs(index.modules) do
    if not has[name] then
      list[#list + 1] = module.file .. ":1: " .. name .. " has no public function: does the file return its table?"
    end
  end
  table.sort(list)
  for _, name in ipairs(index.order) do
    local entry = index.entries[name]
    local function problem(text)
      list[#list + 1] = string.format("%s:%d: %s %s", entry.file, entry.line, name, text)
    end
    if entry.unknown then problem("uses the unknown tag @" .. entry.unknown.tag) end
    if entry.kind == "function" then function_problems(entry, marks, problem) end
    for _, field in ipairs(entry.fields or {}) do
      if field.type == "" or field.text == "" then
        problem("field '" .. field.name .. "' lacks its type or its text")
      end
    end
  end
  return list
end

return M
