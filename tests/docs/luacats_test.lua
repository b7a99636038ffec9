-- The annotation parser, the lint over it, and help's text, on planted sources. usage: luajit luacats_test.lua ROOT
local root = arg[1] or "."
local function tool(name) return assert(loadfile(root .. "/stdlib/tools/" .. name .. ".lua"))() end
local luacats, doclint, describe = tool "luacats", tool "doclint", tool "describe"

local failures, checks = 0, 0
local function check(what, got, wanted)
  checks = checks + 1
  if got ~= wanted then
    failures = failures + 1
    print(("not ok: %s: got %s, wanted %s"):format(what, tostring(got), tostring(wanted)))
  end
end
local function index_of(source)
  return luacats.index { { name = "rille.m", source = source, file = "m.lua" } }
end
local function lint(source) return doclint.problems(index_of(source), luacats.marks) end

-- A complete entry ---------------------------------------------------------------------------------------------------
local full = [==[
--- The module. More of it.

---@class Box : Thing
---@field name string its name
---@field size? table<string, number> sizes
---  by side
local Box = {}

--- Opens the box. Then more.
---
--- Second paragraph.
---@param self_made? fun(a: number, b: string): boolean | nil tells whether
---@param kind "a"|"b" which
---@param ... any the rest
---@return number, string? # how many
---@mark durable
---@async
---@nodiscard
---@error io it is stuck
---@example
--- local b = open("x",
---   1)
function Box:open(self_made, kind,
                  ...)
  local text = [[
--- not a doc line
function Box:fake() end
]]
  --[=[ function Box:commented() end ]=]
  return "function Box:quoted() end", text
end

function Box._hidden() end
local function helper(x) return x end
return Box
]==]
local index = index_of(full)
local open = index.entries["Box:open"]
check("names", table.concat(index.order, " "), "Box Box:open")
check("module", index.modules["rille.m"].summary, "The module.")
check("class parents", index.entries.Box.parents, "Thing")
check("field type", index.entries.Box.fields[2].type, "table<string, number>")
check("field continues", index.entries.Box.fields[2].text, "sizes by side")
check("field optional", index.entries.Box.fields[2].optional, true)
check("summary", open.summary, "Opens the box.")
check("text", open.text, "Opens the box. Then more.\n\nSecond paragraph.")
check("arguments", table.concat(open.arguments, " "), "self_made kind ...")
check("function type", open.params[1].type, "fun(a: number, b: string): boolean | nil")
check("after the type", open.params[1].text, "tells whether")
check("choice type", open.params[2].type, '"a"|"b"')
check("dots", open.params[3].name, "...")
check("mark", open.mark, "durable")
check("flags", tostring(open.async) .. tostring(open.nodiscard), "truetrue")
check("error", open.errors[1].kind .. "/" .. open.errors[1].text, "io/it is stuck")
check("example", open.examples[1].text, 'local b = open("x",\n  1)\n')
check("signature", open.signature, "Box:open([self_made], kind, ...)")
check("line", open.line, 23)
check("no problems", #lint(full), 0)

-- What is public -----------------------------------------------------------------------------------------------------
check("a returned function", index_of("--- Doubles.\nlocal function f(x) end\nreturn f\n").order[1], "rille.m")
check("a returned body", index_of("--- Doubles.\nreturn function(x) end\n").order[1], "rille.m")
check("a returned table", index_of("local M = {}\nM.go = function(x) end\nreturn M\n").order[1], "rille.m.go")
check("a callable table", index_of("local M = {}\nfunction M.go(x) end\nreturn setmetatable(M, {})\n").order[1],
  "rille.m.go")
check("another table", #index_of("local T = {}\nfunction T.go(x) end\nreturn 1\n").order, 0)
check("a private class", #index_of("---@class _T\n---@private\nlocal T = {}\nfunction T.go() end\n").order, 0)
check("alias", index_of('--- Kinds.\n---@alias K\n---| "a"|"b"\n---| "c"\n').entries.K.type, '"a"|"b"|"c"')

-- What the lint must find --------------------------------------------------------------------------------------------
local function refuses(what, source, words)
  local problems = lint(source)
  check(what .. " is found once", #problems, 1)
  check(what .. " is named", (problems[1] or ""):find(words, 1, true) ~= nil, true)
end
local function fn(doc, head)
  return "local M = {}\n" .. doc .. "function M." .. (head or "go(x)") .. " end\nreturn M\n"
end
local param, mark = "---@param x number how many\n", "---@mark durable\n"
check("the base case is clean", #lint(fn("--- Goes.\n" .. param .. mark)), 0)
refuses("no summary", fn(param .. mark), "no summary")
refuses("no mark", fn("--- Goes.\n" .. param), "no ---@mark")
refuses("an unknown mark", fn("--- Goes.\n" .. param .. "---@mark pure\n"), "unknown mark 'pure'")
refuses("no param", fn("--- Goes.\n" .. mark), "'x' has no ---@param")
refuses("a param without text", fn("--- Goes.\n---@param x number\n" .. mark), "lacks its type or its text")
refuses("a param too many", fn("--- Goes.\n" .. param .. mark, "go()"), "which it does not take")
refuses("an unknown kind", fn("--- Goes.\n" .. param .. mark .. "---@error fire it burns\n"),
  "unknown error kind 'fire'")
refuses("an unknown tag", fn("--- Goes.\n" .. param .. mark .. "---@retrun number\n"), "unknown tag @retrun")
refuses("a bare field", "---@class C\n---@field x number\n\n" .. fn("--- Goes.\n" .. param .. mark), "field 'x' lacks")
refuses("a file that hides its functions", "local M = {}\nfunction M.go() end\nreturn { M }\n", "no public function")
check("an undocumented function is found", #lint(fn("", "go()")), 2)

-- help's text --------------------------------------------------------------------------------------------------------
local text = describe.describe(index, "Box.open") or ""
check("help finds a method by a dot", text:match("^[^\n]+"), "Box:open([self_made], kind, ...)  -- durable")
check("help shows errors", text:find("io: it is stuck", 1, true) ~= nil, true)
local box = describe.describe(index, "Box") or ""
check("help lists members", box:find("Box:open\n      Opens the box.", 1, true) ~= nil, true)
check("help knows short names", describe.describe(index, "open"), text)
check("help of nothing", describe.describe(index, "shut"), nil)
local wide = describe.describe(index_of [==[
--- M.
local M = {}
---@class m.Options
---@field lid? string how it is closed: with a key, with a nail, with a rope, with another box on top, or not at all
---@field colour string which

--- Packs.
---@param options? m.Options how
---@param box Box which
---@mark durable
function M.pack(options, box) end
return M
]==], "m.Options") or ""
local longest = 0
for line in wide:gmatch("[^\n]+") do longest = math.max(longest, #line) end
check("help keeps to 80 columns", longest > 60 and longest <= 80, true)
check("help aligns names and what goes on", wide:find("    lid?    string  how it", 1, true) ~= nil and
  wide:find("\n            with", 1, true) ~= nil, true)
local pack = describe.describe(index_of [==[
--- M.
local M = {}
---@class m.Options
---@field lid? string how it is closed

--- Packs.
---@param options? m.Options how
---@mark durable
function M.pack(options) end
return M
]==], "pack") or ""
check("help says where options are told", pack:find("the fields of options: ?m.Options", 1, true) ~= nil, true)

print(("luacats: %d checks, %d failures"):format(checks, failures))
os.exit(failures == 0 and 0 or 1)
