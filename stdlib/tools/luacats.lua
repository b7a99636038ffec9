--- Parses annotations in Lua source, for docs/reference, `help()` and completion.
---
--- The notation is LuaCATS (`---@class`, `@field`, `@param`, `@return`, `@nodiscard`, `@async`, `@deprecated`) with
--- three tags of our own: `---@mark durable|deterministic|step-only|ephemeral`, `---@error kind text`, and
--- `---@example`, followed by verbatim lines. Text above the tags is the description; its first sentence is
--- the summary.
--- Values returned by a file are public, and so is every local with a `---@class` above it; names with a leading `_`
--- are not. Plain LuaJIT, no I/O, only strings and tables in and out.

---@class rille.tools.luacats
local M = {}

M.marks = { durable = true, deterministic = true, ["step-only"] = true, ephemeral = true }

-- Blanks the contents of strings and long comments in the source but keeps line breaks; code and line comments
-- remain.
local function mask(source)
  local out, at = {}, 1
  local function blank(from, to)
    out[#out + 1] = source:sub(from, to):gsub("[^\n]", " ")
  end
  while at <= #source do
    local from = source:find("[%-%[\"']", at)
    if not from then break end
    out[#out + 1] = source:sub(at, from - 1)
    local c, level = source:sub(from, from), source:match("^%[(=*)%[", from) or source:match("^%-%-%[(=*)%[", from)
    if level then
      local _, stop = source:find("]" .. level .. "]", from, true)
      stop = stop or #source
      blank(from, stop)
      at = stop + 1
    elseif source:find("^%-%-", from) then
      local stop = source:find("\n", from, true) or #source + 1
      out[#out + 1] = source:sub(from, stop - 1)
      at = stop
    elseif c == '"' or c == "'" then
      local stop = from + 1
      while stop <= #source and source:sub(stop, stop) ~= c do
        stop = stop + (source:sub(stop, stop) == "\\" and 2 or 1)
      end
      blank(from, math.min(stop, #source))
      at = stop + 1
    else
      out[#out + 1] = c
      at = from + 1
    end
  end
  out[#out + 1] = source:sub(at)
  return table.concat(out)
end

-- Returns the type at the start of `text`, and the rest. Types contain spaces inside brackets and around `|`.
local function split_type(text)
  local depth, quote, at = 0, nil, 1
  while at <= #text do
    local c = text:sub(at, at)
    if quote then
      if c == quote then quote = nil end
    elseif c == '"' or c == "'" then
      quote = c
    elseif c:find("[%(%[{<]") then
      depth = depth + 1
    elseif c:find("[%)%]}>]") then
      depth = depth - 1
    elseif c:find("%s") and depth == 0 then
      local before, after = text:sub(1, at - 1):match("(%S)%s*$"), text:match("^%s*(%S)", at)
      if before ~= "|" and before ~= ":" and after ~= "|" then break end
    end
    at = at + 1
  end
  local rest = text:sub(at):gsub("^%s*#?%s*", "")
  return text:sub(1, at - 1), rest
end

local function summary_of(text)
  local paragraph = (text .. "\n\n"):match("^%s*(.-)\n%s*\n"):gsub("%s*\n%s*", " ")
  return paragraph:match("^(.-[%.!?])%s") or paragraph:match("^(.-[%.!?])$") or paragraph
end

local function named(rest)
  local name, optional, tail = rest:match("^([%w_%.]+)(%??)%s*(.*)$")
  local type, text = split_type(tail or "")
  return { name = name or rest, optional = optional == "?" or nil, type = type, text = text }
end

local tags = {}
function tags.param(block, rest) local p = named(rest) table.insert(block.params, p) return p end
function tags.field(block, rest) local f = named(rest) table.insert(block.fields, f) return f end
tags["return"] = function(block, rest)
  local type, text = split_type(rest)
  local r = { type = type, text = text }
  table.insert(block.returns, r)
  return r
end
function tags.error(block, rest)
  local kind, text = rest:match("^(%S*)%s*(.*)$")
  local e = { kind = kind, text = text }
  table.insert(block.errors, e)
  return e
end
function tags.class(block, rest)
  local name, parents = rest:gsub("^%(exact%)%s*", ""):match("^([%w_%.]+)%s*:?%s*(.*)$")
  block.class, block.parents = name, parents ~= "" and parents or nil
end
function tags.alias(block, rest)
  local name, tail = rest:match("^([%w_%.]+)%s*(.*)$")
  local type, text = split_type(tail or "")
  block.alias = { name = name, type = type, text = text }
  return block.alias
end
function tags.example(block)
  local e = { verbatim = true, text = "" }
  table.insert(block.examples, e)
  return e
end
function tags.mark(block, rest) block.mark = rest:match("^%S+") or "" end
function tags.meta(block, rest) block.meta = rest:match("^%S+") or true end
for _, flag in ipairs { "nodiscard", "async", "deprecated", "private" } do
  tags[flag] = function(block) block[flag] = true end
end
for _, other in ipairs { "overload", "type", "generic", "vararg", "see", "diagnostic", "cast" } do
  tags[other] = function() end  -- only language servers read these tags
end

-- Parses a block of consecutive `---` lines into a table.
local function read_block(lines)
  local block = { line = lines[1].line, params = {}, fields = {}, returns = {}, errors = {}, examples = {} }
  local text, current = {}, nil
  for _, entry in ipairs(lines) do
    local tag, rest = entry.text:match("^%s*@([%w_%-]+)%s*(.-)%s*$")
    if tag then
      if tags[tag] then current = tags[tag](block, rest)
      else
        block.unknown = block.unknown or { tag = tag, line = entry.line }
        current = nil
      end
    elseif current and current.verbatim then
      current.text = current.text .. entry.text:gsub("^ ", "") .. "\n"
    elseif current and current.type and entry.text:find("^%s*|") then  -- an alias that continues over several lines
      local choices = entry.text:match("^%s*|%s*(.-)%s*$")
      current.type = current.type == "" and choices or current.type .. "|" .. choices
    elseif current then
      current.text = current.text .. " " .. entry.text:match("^%s*(.-)%s*$")
    else
      text[#text + 1] = entry.text:gsub("^ ", "")
    end
  end
  block.text = table.concat(text, "\n"):match("^%s*(.-)%s*$")
  block.summary = summary_of(block.text)
  return block
end

-- Returns the kind, name and arguments of the function or local that the line `code` begins to define.
local function definition(code)
  local name, arguments = code:match("^%s*function%s+([%w_%.:]+)%s*%(([^%)]*)%)")
  if not name then name, arguments = code:match("^%s*([%w_%.]+)%s*=%s*function%s*%(([^%)]*)%)") end
  if name then return "function", name, arguments end
  name, arguments = code:match("^%s*local%s+function%s+([%w_]+)%s*%(([^%)]*)%)")
  if name then return "local function", name, arguments end
  arguments = code:match("^return%s+function%s*%(([^%)]*)%)")
  if arguments then return "return function", "", arguments end
  name = code:match("^%s*local%s+([%w_]+)")
  if name then return "local", name end
end

-- Parses a file: blocks of `---` with the code below each, every function, and the name that the file returns.
local function read_file(source)
  local masked = mask(source)
  local found, lines, offset, number = { items = {} }, {}, 1, 0
  local function close(kind, name, arguments)
    local block = #lines > 0 and read_block(lines) or nil
    lines = {}
    if block or kind:find("function") then
      table.insert(found.items, { kind = kind, name = name, arguments = arguments, block = block, line = number })
    end
  end
  for line in (masked .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    local doc = line:match("^%s*%-%-%-(.*)$")
    if doc and not doc:find("^%-") then
      lines[#lines + 1] = { text = doc, line = number }
    elseif line:find("^%s*$") then
      if #lines > 0 then close("text") end
    elseif not line:find("^%s*%-%-") then
      local kind, name, arguments = definition(masked:sub(offset, offset + 1000))
      if #lines > 0 or kind == "function" or kind == "return function" or kind == "local function" then
        close(kind or "text", name, arguments)
      end
      found.returned = line:match("^return%s+([%w_]+)%s*$") or line:match("^return%s+setmetatable%(%s*([%w_]+)%s*,")
        or found.returned
    end
    offset = offset + #line + 1
  end
  if #lines > 0 then close("text") end
  return found
end

local function arguments_of(text)
  local list = {}
  for name in (text or ""):gmatch("[%w_%.]+") do list[#list + 1] = name end
  return list
end

-- Formats a function's call with optional arguments in brackets: "rille.rent(name, [options])".
local function signature_of(f)
  local optional, shown = {}, {}
  for _, p in ipairs(f.params) do optional[p.name] = p.optional end
  for i, name in ipairs(f.arguments) do shown[i] = optional[name] and "[" .. name .. "]" or name end
  return f.name .. "(" .. table.concat(shown, ", ") .. ")"
end

local function add_function(index, item, name, owner, at)
  local block = item.block or { params = {}, returns = {}, errors = {}, examples = {}, text = "", summary = "" }
  if block.private then return end
  local f = { kind = "function", name = name, owner = owner, short = name:match("[%w_]+$"), file = at.file,
    line = item.line,
    module = at.module, arguments = arguments_of(item.arguments) }
  for _, key in ipairs { "summary", "text", "params", "returns", "errors", "examples", "mark", "async", "nodiscard",
    "deprecated", "unknown" } do f[key] = block[key] end
  f.signature = signature_of(f)
  index.entries[name] = f
  index.order[#index.order + 1] = name
end

-- Adds a class. A class that is already known and has no new fields is only continued in this file: its first block
-- describes it.
local function add_class(index, block, at)
  if index.entries[block.class] and #(block.fields or {}) == 0 then return end
  local class = { kind = "class", name = block.class, parents = block.parents, summary = block.summary,
    text = block.text,
    fields = block.fields, examples = block.examples, unknown = block.unknown, file = at.file, line = block.line,
    module = at.module }
  index.entries[class.name] = class
  index.order[#index.order + 1] = class.name
end

local function add_alias(index, block, at)
  local alias = block.alias
  local text = alias.text ~= "" and alias.text or block.text
  index.entries[alias.name] = { kind = "alias", name = alias.name, type = alias.type, text = text,
    summary = summary_of(text),
    file = at.file, line = block.line, module = at.module }
  index.order[#index.order + 1] = alias.name
end

-- Returns a file's description: its first block of `---` text, or its opening comment ("-- rille.nn: layers.").
local function head_of(source, first)
  local block = first and first.kind == "text" and first.block
  if block and not block.class and not block.alias then return block.text end
  local lines = {}
  for line in source:gmatch("([^\n]*)\n") do
    local text = line:match("^%-%- ?(.*)$")
    if not text or text:find("^%-") then break end
    lines[#lines + 1] = text
  end
  return (table.concat(lines, "\n"):gsub("^rille%.[%w_%.]+: (%l?)", string.upper))
end

local function add_file(index, file)
  local found = read_file(file.source)
  local at = { file = file.file or file.name, module = file.name }
  local owners, first = {}, found.items[1]
  -- A file whose first line is "-- Part of rille.optim: .." adds to that module.
  if found.returned then owners[found.returned] = file.source:match("^%-%- Part of ([%w%.]+%w)") or file.name end
  for _, item in ipairs(found.items) do
    local block = item.block
    if item.kind == "local" and block and block.class and not block.private then owners[item.name] = block.class end
  end
  for _, item in ipairs(found.items) do
    local block = item.block
    if block and block.class and not block.private then add_class(index, block, at)
    elseif block and block.alias then add_alias(index, block, at)
    elseif item.kind == "return function" or (item.kind == "local function" and item.name == found.returned) then
      add_function(index, item, file.name, nil, at)
    elseif item.kind == "function" then
      local var, separator, short = item.name:match("^([%w_]+)([%.:])([%w_]+)$")
      if var and owners[var] and not short:find("^_") then
        add_function(index, item, owners[var] .. separator .. short, owners[var], at)
      end
    end
  end
  local text = head_of(file.source, first)
  index.modules[file.name] = { kind = "module", name = file.name, file = at.file, line = 1, text = text,
    summary = summary_of(text) }
end

--- Builds the index of a list of files.
---
--- `index.entries` maps a name ("rille.rent", "Instance:call", "RentOptions") to its entry, `index.order`
--- lists the names in the order of the files, and `index.modules` maps a module's name to its opening text.
---@param files table list of `{ name = "rille.nn", source = text, file = "stdlib/nn/init.lua" }`; `file` is for
---messages
---@return table index with the fields `entries`, `order` and `modules`
---@mark deterministic
---@example
--- local index = luacats.index { { name = "rille.nn", source = source } }
--- print(index.entries["rille.nn.gpt"].summary)
function M.index(files)
  local index = { entries = {}, order = {}, modules = {} }
  for _, file in ipairs(files) do add_file(index, file) end
  return index
end

return M
