-- Holds the table of grants (tests/lua/grants_rows.lua) against docs/reference and the manual: every public function
-- has a row; what needs a grant says so in the reference, by the error `denied`, and in docs/manual/grants.md.
-- usage: luajit grants_test.lua ROOT
local root = arg[1]
package.path = root .. "/tests/lua/?.lua"
local rows = require "grants_rows"

local function read(path)
  local file = assert(io.open(root .. "/" .. path))
  local text = file:read("*a")
  file:close()
  return text
end

local problems, free = {}, {}
local function problem(...) problems[#problems + 1] = string.format(...) end
for name in rows.none:gmatch("%S+") do
  if free[name] or rows.needs[name] then problem("%s has two rows", name) end
  free[name] = true
end

local known = {}
local listing = io.popen("ls " .. root .. "/docs/reference/*.md")
for path in listing:lines() do
  local text = read(path:sub(#root + 2)):gsub("\n### ", "\n\1")
  for name, body in text:gmatch("\1([%w_.:]+)(%([^\1]*)") do
    known[name] = true
    local denied = body:find("| `denied` |", 1, true)
    if rows.needs[name] and not denied then
      problem("%s needs '%s': the reference has no error `denied`", name, rows.needs[name])
    end
    if free[name] and denied then
      problem("the reference says `denied` of %s, whose row says that it needs nothing", name)
    end
    if not rows.needs[name] and not free[name] then
      problem("%s has no row in tests/lua/grants_rows.lua: which grant does it need?", name)
    end
  end
end
listing:close()

local page = read("docs/manual/grants.md")
for name in pairs(rows.needs) do
  local short = name:gsub("^Instance:", "box:"):gsub("^Device:", "dev:"):gsub("^Cluster:", "cluster:")
    :gsub("^Volume:", "vol:"):gsub("^Communicator:", "comm:"):gsub("^Kernel:", "kernel:"):gsub("^Store:", "store:")
    :gsub("^rille%.train%.run$", "rille.train")
  if not page:find("`" .. short, 1, true) then problem("docs/manual/grants.md does not name %s", short) end
  if name:find("^rille") or name:find(":") then
    if not known[name] then problem("%s is not in the reference", name) end
  end
end
for name in pairs(free) do
  if (name:find("^rille") or name:find(":")) and not known[name] then problem("%s is not in the reference", name) end
end
if next(known) == nil then problem("no function was found in docs/reference") end

table.sort(problems)
for _, text in ipairs(problems) do print(text) end
os.exit(#problems == 0 and 0 or 1)
