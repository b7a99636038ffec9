--- Finds mistakes in a workflow script without running it: names of Rille that do not exist, options that do not exist,
--- durable verbs where they are refused. It knows what the annotations say, and follows local variables that hold what
--- a verb has returned; of what it does not know it says nothing. For `rille check`. Plain LuaJIT.

---@class rille.tools.check
local M = {}

local openers, closers = { ["("] = ")", ["{"] = "}", ["["] = "]" }, { [")"] = true, ["}"] = true, ["]"] = true }
-- Durable verbs that just do their work in a step's body and on a machine.
local works_anywhere = { ["rille.sleep"] = true, ["rille.now"] = true, ["rille.store"] = true, ["rille.random"] = true }

local Checker = {}
Checker.__index = Checker

function Checker:text(i)
  local token = self.tokens[i]
  return token and self.source:sub(token.first, token.last) or ""
end

function Checker:is_mark(i, text)
  local token = self.tokens[i]
  return token ~= nil and token.kind == "mark" and self:text(i) == text
end

function Checker:line_of(i)
  local at = self.tokens[i] and self.tokens[i].first or #self.source
  local line, begin = 1, 1
  for newline in self.source:gmatch("()\n") do
    if newline >= at then break end
    line, begin = line + 1, newline + 1
  end
  return line, at - begin + 1
end

function Checker:report(i, message, hint)
  local line, column = self:line_of(i)
  table.insert(self.problems, { line = line, column = column, message = message, hint = hint })
end

-- Pairs brackets, and blocks with their `end`: self.partner[i] is the token that closes what token i opens, and back.
function Checker:pair()
  self.partner = {}
  local open = {}
  for i, token in ipairs(self.tokens) do
    local text = self:text(i)
    local opens = token.kind == "mark" and openers[text]
      or token.kind == "keyword" and (text == "function" or text == "repeat" or text == "then" or text == "do")
    local closes = token.kind == "mark" and closers[text] or token.kind == "keyword" and
      (text == "end" or text == "until" or text == "else" or text == "elseif")
    if closes and #open > 0 then
      local begin = table.remove(open)
      self.partner[begin], self.partner[i] = i, begin
    end
    if opens or (token.kind == "keyword" and text == "else") then open[#open + 1] = i end
  end
end

-- The chain of names that ends with token `last`: links { kind = "name" or "call", text =, separator =, at = }.
function Checker:chain(last)
  local links, at = {}, last
  while at >= 1 do
    local token, text = self.tokens[at], self:text(at)
    if token.kind == "name" then
      local before = self.tokens[at - 1] and self.tokens[at - 1].kind == "mark" and self:text(at - 1)
      local separator = (before == "." or before == ":") and before or nil
      -- "..", the concatenation, is two of these
      if separator == "." and self:is_mark(at - 2, ".") then separator = nil end
      table.insert(links, 1, { kind = "name", text = text, separator = separator, at = at })
      if not separator then return links, at end
      at = at - 2
    elseif token.kind == "mark" and (text == ")" or text == "}") and self.partner[at] then
      table.insert(links, 1, { kind = "call" })
      at = self.partner[at] - 1
    elseif token.kind == "string" then
      table.insert(links, 1, { kind = "call" })
      at = at - 1
    else
      return nil
    end
  end
end

-- The one class that a type names, or nil: "Instance", but not "Instance|string".
function Checker:class_in(type)
  if not type or type:find("|") then return nil end
  local name = type:match("^([%a_][%w_%.]*)%??$")
  local entry = name and self.index.entries[name]
  return entry and entry.kind == "class" and name or nil
end

function Checker:method(class, name)
  local entry = class
  while entry do
    local found = self.index.entries[entry .. ":" .. name] or self.index.entries[entry .. "." .. name]
    if found then return found end
    local known = self.index.entries[entry]
    entry = known and known.parents and known.parents:match("[%a_][%w_%.]*")
  end
end

-- What a chain names: { path =, entry =, class = }, or nil.
function Checker:resolve(links)
  local at = self.variables[links[1].text]
  if not at then return nil end
  for i = 2, #links do
    local link, after = links[i], nil
    if link.kind == "name" then
      if at.path then
        local path = at.path .. "." .. link.text
        after = { path = path, entry = self.index.entries[path] }
      elseif at.class then
        after = { entry = self:method(at.class, link.text), owner = at.class, name = link.text }
      end
    elseif at.entry and at.entry.kind == "function" and at.entry.returns[1] then
      after = { class = self:class_in(at.entry.returns[1].type) }
    end
    if not after then return nil end
    at = after
  end
  return at
end

local function names_of(index, owner, module)
  local names = {}
  for _, name in ipairs(index.order) do
    local entry = index.entries[name]
    if owner and entry.owner == owner then names[#names + 1] = entry.short end
    if module and name:match("^(.*)%.[%w_]+$") == module then names[#names + 1] = name:match("[%w_]+$") end
  end
  if module == "rille" then
    for name in pairs(index.modules) do names[#names + 1] = name:match("^rille%.([%w_]+)$") end
  end
  return names
end

function Checker:hint(word, names)
  local near = self.did_you_mean(word, names)
  return near ~= "" and near or nil
end

-- Whether the module is one whose functions are all annotated.
function Checker:is_annotated(module)
  if module == "rille" then return true end
  return self.index.modules[module] ~= nil and #names_of(self.index, nil, module) > 0
end

function Checker:check_name(links, found)
  local last = links[#links]
  if not found or found.entry or last.kind ~= "name" or not last.separator then return end
  if found.owner then
    local fields = {}
    for _, field in ipairs(self.index.entries[found.owner].fields or {}) do fields[field.name] = true end
    if fields[last.text] or last.separator ~= ":" then return end
    local names = names_of(self.index, found.owner)
    if #names > 0 then
      self:report(last.at, ("%s has no method '%s'"):format(found.owner, last.text), self:hint(last.text, names))
    end
  elseif found.path and not self.index.modules[found.path] then
    local module = found.path:match("^(.*)%.")
    if not self:is_annotated(module) or self.known_values[found.path] then return end
    self:report(last.at, found.path .. " does not exist", self:hint(last.text, names_of(self.index, nil, module)))
  end
end

-- Whether a class is a table of options: one without methods.
function Checker:is_options(class) return #names_of(self.index, class) == 0 end

-- The keys of the table that token `open` begins, as { name =, at =, value = the token behind "=" }.
function Checker:keys(open)
  local keys, i, stop = {}, open + 1, self.partner[open] or #self.tokens
  while i < stop do
    if self.tokens[i].kind == "name" and self:is_mark(i + 1, "=") and not self:is_mark(i + 2, "=") then
      keys[#keys + 1] = { name = self:text(i), at = i, value = i + 2 }
    end
    while i < stop and not (self:is_mark(i, ",") or self:is_mark(i, ";")) do
      local token, text = self.tokens[i], self:text(i)
      local skips = (token.kind == "mark" and openers[text]) or (token.kind == "keyword" and text == "function")
      i = skips and (self.partner[i] or stop) + 1 or i + 1
    end
    i = i + 1
  end
  return keys
end

-- Whether a type has room for a text: one that names only lists, tables and options has none.
function Checker:takes_text(type)
  for one in (type .. "|"):gmatch("(.-)%|") do
    local name = one:match("^%s*(.-)%??%s*$")
    local is_table = name == "table" or name:find("%[%]$") or name:find("^table<") or self:class_in(name)
    if not is_table then return true end
  end
  return false
end

-- A value that is one text where a list or a table belongs.
function Checker:check_value(key, field, verb)
  local token = self.tokens[key.value]
  local alone = self:is_mark(key.value + 1, ",") or self:is_mark(key.value + 1, ";") or self:is_mark(key.value + 1, "}")
  if not token or token.kind ~= "string" or not alone or not field.type or self:takes_text(field.type) then return end
  local text = self:text(key.value)
  local hint = key.name == "argv" and ('a line for the shell is { "sh", "-c", %s }'):format(text)
    or ("%s = { %s }"):format(key.name, text)
  self:report(key.value, ("%s: %s is a table, not a text"):format(verb, key.name), hint)
end

-- Checks the literal table at `open` against the fields of an options class.
function Checker:check_options(open, class, verb)
  local entry, fields, names = self.index.entries[class], {}, {}
  local from = entry
  while from do
    for _, field in ipairs(from.fields or {}) do
      fields[field.name] = field
      names[#names + 1] = field.name
    end
    from = from.parents and self.index.entries[from.parents:match("[%a_][%w_%.]*")]
  end
  if #names == 0 then return end
  for _, key in ipairs(self:keys(open)) do
    local field = fields[key.name]
    if not field then
      self:report(key.at, ("%s: there is no option '%s'"):format(verb, key.name), self:hint(key.name, names))
    elseif self:is_mark(key.value, "{") then
      local inner = self:class_in(field.type)
      if inner and self:is_options(inner) then self:check_options(key.value, inner, verb .. ": " .. key.name) end
    else
      self:check_value(key, field, verb)
    end
  end
end

-- The first tokens of a call's arguments.
function Checker:arguments(open)
  if not self:is_mark(open, "(") then return { open } end
  local first, i, stop = {}, open + 1, self.partner[open] or #self.tokens + 1
  if i < stop then first[1] = i end
  while i < stop do
    local token, text = self.tokens[i], self:text(i)
    if self:is_mark(i, ",") then first[#first + 1] = i + 1 end
    local skips = (token.kind == "mark" and openers[text]) or (token.kind == "keyword" and text == "function")
    i = skips and (self.partner[i] or stop) + 1 or i + 1
  end
  return first
end

function Checker:check_place(entry, at)
  for i = #self.inside, 1, -1 do
    local place = self.inside[i]
    local refused = entry.mark == "durable" and entry.name:find("^rille%.") and not works_anywhere[entry.name]
    if place.kind == "step" and refused then
      return self:report(at, ("%s in the body of a step"):format(entry.name),
        "call it before or after the step: a step is recorded as a whole")
    elseif place.kind == "machine" then
      if refused then
        self:report(at, ("%s in a function that runs on a machine"):format(entry.name),
          "call it in the workflow, before or after the call")
      end
      return
    end
  end
end

function Checker:check_call(open)
  local last = open - 1
  local token = self.tokens[last]
  if not token or (token.kind ~= "name" and self:text(last) ~= ")") then return end
  local links = self:chain(last)
  if not links then return end
  if links[1].at and self:text(links[1].at - 1) == "function" then return end  -- a definition
  local found = self:resolve(links)
  self:check_name(links, found)
  local entry = found and found.entry
  if not entry or entry.kind ~= "function" then return end
  self:check_place(entry, links[#links].at or last)
  for number, first in ipairs(self:arguments(open)) do
    local name = entry.arguments[number]
    for _, param in ipairs(entry.params) do
      if param.name == name then
        local class = self:class_in((param.type:gsub("%?$", "")))
        if class and self:is_options(class) and self:is_mark(first, "{") then
          self:check_options(first, class, entry.name)
        end
      end
    end
    if self:text(first) == "function" and self.tokens[first].kind == "keyword" and self.partner[first] then
      local kind = (entry.name == "rille.step" and "step")
        or ((entry.name == "Instance:call" or entry.name == "Cluster:call") and "machine") or "plain"
      self.bodies[first] = { kind = kind, stop = self.partner[first] }
    end
  end
end

-- A variable that is set: what it holds, or nil for what is not known.
function Checker:check_assignment(i)
  local name = self:text(i)
  if not self:is_mark(i + 1, "=") or self:is_mark(i + 2, "=") then return end
  local before = self:text(i - 1)
  if before == "." or before == ":" or self.in_table[#self.in_table] then return end
  local value = i + 2
  if self:text(value) == "require" then
    local string = self:is_mark(value + 1, "(") and value + 2 or value + 1
    local module = self:text(string):match("^[\"'](rille[%w_%.]*)[\"']$")
    self.variables[name] = module and { path = module } or nil
    return
  end
  -- the longest chain that begins here
  local at, last = value, nil
  if not self.tokens[at] or self.tokens[at].kind ~= "name" then self.variables[name] = nil return end
  while self.tokens[at] do
    local token = self.tokens[at]
    if token.kind == "name" then last = at
      local following = self:text(at + 1)
      if (following == "." or following == ":") and not self:is_mark(at + 2, ".") then at = at + 2 goto go_on end
    end
    if self:is_mark(at + 1, "(") or self:is_mark(at + 1, "{") then
      last = self.partner[at + 1]
      at = last or #self.tokens + 1
      local following = self:text(at + 1)
      if (following == "." or following == ":") and not self:is_mark(at + 2, ".") then at = at + 2 goto go_on end
      if self:is_mark(at + 1, "(") then goto go_on end
    elseif self.tokens[at + 1] and self.tokens[at + 1].kind == "string" then
      last = at + 1
    end
    do break end
    ::go_on::
  end
  local following = self.tokens[(last or value) + 1]
  local ends = not following or following.kind == "name" or following.kind == "keyword"
    and self:text(last + 1) ~= "or" and self:text(last + 1) ~= "and" or self:text(last + 1) == ";"
  local links = last and ends and self:chain(last)
  local found = links and self:resolve(links)
  self.pending[#self.pending + 1] = { at = last or value, name = name, found = found }
end

function Checker:forget_parameters(i)
  local open = i + 1
  while self.tokens[open] and not self:is_mark(open, "(") do open = open + 1 end
  for at = open + 1, (self.partner[open] or open) - 1 do
    if self.tokens[at].kind == "name" then self.variables[self:text(at)] = nil end
  end
end

function Checker:run()
  self:pair()
  local i = 1
  while i <= #self.tokens do
    local token, text = self.tokens[i], self:text(i)
    while #self.inside > 0 and i > self.inside[#self.inside].stop do table.remove(self.inside) end
    for n = #self.pending, 1, -1 do
      if i > self.pending[n].at then
        local set = table.remove(self.pending, n)
        self.variables[set.name] = set.found and (set.found.path or set.found.class) and set.found or nil
      end
    end
    if self:is_mark(i, "{") then self.in_table[#self.in_table + 1] = i end
    if self:is_mark(i, "}") then self.in_table[#self.in_table] = nil end
    if token.kind == "keyword" and text == "function" then
      if self.bodies[i] then self.inside[#self.inside + 1] = self.bodies[i] end
      self:forget_parameters(i)
    elseif self:is_mark(i, "(") or self:is_mark(i, "{") then
      self:check_call(i)
    elseif token.kind == "name" then
      self:check_assignment(i)
    end
    i = i + 1
  end
  table.sort(self.problems, function(a, b) return a.line < b.line or (a.line == b.line and a.column < b.column) end)
  return self.problems
end

--- Checks a script.
---@param source string its text
---@param tokens table[] its tokens, without comments: { kind =, first =, last = }
---@param index table from `luacats.index`
---@param did_you_mean function (word, names) -> a sentence that names the nearest one, or ""
---@return { line: integer, column: integer, message: string, hint: string? }[] problems in the order of the text
---@mark deterministic
function M.check(source, tokens, index, did_you_mean)
  local known = {}
  for _, name in ipairs { "home", "args", "null", "run", "agent", "rank", "world", "version" } do
    known["rille." .. name] = true
  end
  local checker = setmetatable({ source = source, tokens = tokens, index = index, did_you_mean = did_you_mean,
    known_values = known, variables = { rille = { path = "rille" } }, problems = {}, inside = {}, bodies = {},
    in_table = {}, pending = {} }, Checker)
  return checker:run()
end

return M
