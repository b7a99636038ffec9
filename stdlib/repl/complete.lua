--- Completion and hints of the prompt, from the session's variables and the annotations. Runs no code of the user's:
--- the fields of a value are read raw, and what a call returns is known from its annotation.

local M = {}

local sources = { require = true, dofile = true, loadfile = true }
local keywords = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
  "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while" }
local openers, closers = { ["("] = ")", ["{"] = "}", ["["] = "]" }, { [")"] = true, ["}"] = true, ["]"] = true }

-- The text of token `i`; "" beyond the ends.
local function text_of(line, i)
  local token = line.tokens[i]
  return token and line.text:sub(token.first, token.last) or ""
end

local function is_word(token)
  return token and (token.kind == "name" or token.kind == "keyword" or token.kind == "constant")
end

-- The token that opens the bracket which token `i` closes, or nil.
local function opening(line, i)
  local depth = 0
  for at = i, 1, -1 do
    local text = text_of(line, at)
    if line.tokens[at].kind == "mark" then
      if closers[text] then depth = depth + 1 end
      if openers[text] then
        depth = depth - 1
        if depth == 0 then return at end
      end
    end
  end
end

-- The chain of names that ends with token `last`: a list of { kind = "name", "call" or "index", text, separator }.
-- "rille.device():randn" has four links. Nil if it does not begin with a name.
local function chain_before(line, last)
  local links, at = {}, last
  while at >= 1 do
    local token, text = line.tokens[at], text_of(line, at)
    if token.kind == "name" then
      local before = text_of(line, at - 1)
      local separator = (before == "." or before == ":") and before or nil
      table.insert(links, 1, { kind = "name", text = text, separator = separator })
      if not separator then return links end
      at = at - 2
    elseif text == ")" or text == "}" or text == "]" then
      local open = opening(line, at)
      if not open then return nil end
      if text == "]" then table.insert(links, 1, { kind = "index" })
      else table.insert(links, 1, { kind = "call" }) end
      at = open - 1
    elseif token.kind == "string" and not token.open then
      table.insert(links, 1, { kind = "call" })
      at = at - 1
    else
      return nil
    end
  end
end

-- The first class or options table of the index that a type names: "Tensor", "Offer[]?" -> "Offer", list.
local function class_in(index, type)
  for name, brackets in (type or ""):gmatch("([%a_][%w_%.]*)(%[?%]?)") do
    local entry = index.entries[name]
    if entry and entry.kind == "alias" then
      local class, list = class_in(index, entry.type)
      if class then return class, list end
    elseif entry and entry.kind == "class" then
      return name, brackets == "[]"
    end
  end
end

local function field_of(index, class, name)
  local entry = index.entries[class]
  while entry do
    for _, field in ipairs(entry.fields or {}) do
      if field.name == name then return field end
    end
    entry = entry.parents and index.entries[entry.parents:match("[%a_][%w_%.]*")]
  end
end

-- What the chain names: { value =, known = whether it is a value, class =, entry = its annotation }.
local function resolve(M_, links)
  local index, p = M_.index(), M_.primitives
  local at = { value = p.step(p.variables(), links[1].text), path = links[1].text }
  at.known = at.value ~= nil
  if not at.known and at.path ~= "rille" then return nil end
  at.class = at.known and M_.class_of(at.value) or nil
  at.entry = index.entries[at.path] or index.entries["rille." .. at.path]
  for i = 2, #links do
    local link, after = links[i], {}
    if link.kind == "name" then
      if at.known then after.value = p.step(at.value, link.text, at.path) end
      after.known = after.value ~= nil
      after.path = at.path and at.path .. "." .. link.text
      after.class = after.known and M_.class_of(after.value) or nil
      if at.class then
        after.entry = index.entries[at.class .. ":" .. link.text] or index.entries[at.class .. "." .. link.text]
      end
      after.entry = after.entry or (after.path and index.entries[after.path])
      local field = not after.class and at.class and field_of(index, at.class, link.text)
      if field then after.class, after.list = class_in(index, field.type) end
    elseif link.kind == "call" then
      local returned = at.entry and at.entry.returns and at.entry.returns[1]
      if not returned and not at.list then return nil end
      if returned then after.class, after.list = class_in(index, returned.type) end
    elseif at.list then
      after.class = at.class
    else
      return nil
    end
    at = after
  end
  return at
end

local function add(found, seen, word, typed)
  if type(word) ~= "string" or seen[word] or word:sub(1, #typed) ~= typed then return end
  if word:sub(1, 2) == "__" or (word:sub(1, 1) == "_" and typed == "") then return end
  seen[word] = true
  found[#found + 1] = word
end

local function add_members(M_, found, seen, at, typed, separator)
  local index = M_.index()
  if at.known then
    for _, name in ipairs(M_.primitives.names(at.value)) do add(found, seen, name, typed) end
  end
  if at.path == "rille" then
    for _, name in ipairs(M_.primitives.stdlib()) do add(found, seen, name:match("^rille%.([%w_]+)$"), typed) end
  end
  if not at.class then return end
  local owner = at.class
  while owner do
    for _, name in ipairs(index.order) do
      local entry = index.entries[name]
      if entry.owner == owner then add(found, seen, entry.short, typed) end
    end
    local entry = index.entries[owner]
    if separator == "." then
      for _, field in ipairs(entry and entry.fields or {}) do add(found, seen, field.name, typed) end
    end
    owner = entry and entry.parents and entry.parents:match("[%a_][%w_%.]*")
  end
end

-- The innermost bracket that is open at the end of the line, its token's number, or nil.
local function open_bracket(line, last)
  local depth = 0
  for at = last, 1, -1 do
    if line.tokens[at].kind == "mark" then
      local text = text_of(line, at)
      if closers[text] then depth = depth + 1 end
      if openers[text] then
        if depth == 0 then return at end
        depth = depth - 1
      end
    end
  end
end

-- Which argument of the call opened by token `open` token `last` belongs to.
local function argument_number(line, open, last)
  local depth, number = 0, 1
  for at = open + 1, last do
    if line.tokens[at].kind == "mark" then
      local text = text_of(line, at)
      if openers[text] then depth = depth + 1 end
      if closers[text] then depth = depth - 1 end
      if text == "," and depth == 0 then number = number + 1 end
    end
  end
  return number
end

local function callee(M_, line, open)
  local last = open - 1
  if last < 1 or (line.tokens[last].kind ~= "name" and not closers[text_of(line, last)]) then return nil end
  local links = chain_before(line, last)
  local at = links and resolve(M_, links)
  return at and at.entry and at.entry.kind == "function" and at.entry or nil
end

-- The class (in the index) of the options table whose opening brace is at `open`.
local function options_at(M_, line, open)
  local index = M_.index()
  local before = text_of(line, open - 1)
  if before == "=" then  -- the value of a field of an outer table
    local outer = open_bracket(line, open - 1)
    local class = outer and text_of(line, outer) == "{" and options_at(M_, line, outer)
    local field = class and field_of(index, class, text_of(line, open - 2))
    return field and class_in(index, field.type)
  end
  local bracket = open_bracket(line, open - 1)
  local entry, number
  if before == "(" or before == "," then
    if not bracket or text_of(line, bracket) ~= "(" then return nil end
    entry, number = callee(M_, line, bracket), argument_number(line, bracket, open - 1)
  else
    entry, number = callee(M_, line, open), 1
  end
  local name = entry and entry.arguments[number]
  for _, param in ipairs(entry and entry.params or {}) do
    if param.name == name then return class_in(index, param.type) end
  end
end

-- The texts that a type allows: '"spot"|"on_demand"' -> { "spot", "on_demand" }.
local function choices_of(index, type)
  local found = {}
  for text in (type or ""):gmatch('"([^"]*)"') do found[#found + 1] = text end
  if #found > 0 then return found end
  for name in (type or ""):gmatch("[%a_][%w_%.]*") do
    local entry = index.entries[name]
    if entry and entry.kind == "alias" then
      for _, text in ipairs(choices_of(index, entry.type)) do found[#found + 1] = text end
    end
  end
  return found
end

-- Completions inside an open string: the texts that an option allows, modules after `require`, else files.
local function in_string(M_, line)
  local count = #line.tokens
  local token = line.tokens[count]
  local quote = line.text:match("^%[=*%[", token.first) or line.text:sub(token.first, token.first)
  local begin = token.first + #quote
  local typed = line.text:sub(begin)
  local found, seen = {}, {}
  if text_of(line, count - 1) == "=" then
    local open = open_bracket(line, count - 1)
    local class = open and text_of(line, open) == "{" and options_at(M_, line, open)
    local field = class and field_of(M_.index(), class, text_of(line, count - 2))
    for _, text in ipairs(field and choices_of(M_.index(), field.type) or {}) do add(found, seen, text, typed) end
  end
  local before = text_of(line, count - 1)
  local verb = before == "(" and text_of(line, count - 2) or before
  if verb == "require" then
    for _, name in ipairs(M_.primitives.stdlib()) do add(found, seen, name, typed) end
    for _, name in ipairs(M_.primitives.files(typed:gsub("%.", "/"))) do
      add(found, seen, (name:gsub("%.lua$", ""):gsub("/", ".")), typed)
    end
  elseif #found == 0 then
    for _, name in ipairs(M_.primitives.files(typed)) do
      if not sources[verb] or name:find("[/a]$") then add(found, seen, name, typed) end
    end
  end
  return begin, found
end

-- Names in help: "?rent" and "?box:st".
local function in_help(M_, text)
  local begin = text:match("^%?+%s*()")
  local typed = text:sub(begin)
  local found, seen = {}, {}
  local index = M_.index()
  for _, name in ipairs(index.order) do
    add(found, seen, name, typed)
    if typed ~= "" then add(found, seen, index.entries[name].short, typed) end
  end
  for name in pairs(index.modules) do add(found, seen, name, typed) end
  for _, name in ipairs(M_.lua_names or {}) do add(found, seen, name, typed) end
  local variable, separator, method = typed:match("^([%a_][%w_]*)([%.:])([%w_]*)$")
  local at = variable and resolve(M_, { { kind = "name", text = variable } })
  if at then
    local members = {}
    add_members(M_, members, {}, at, method, separator)
    for _, name in ipairs(members) do add(found, seen, variable .. separator .. name, typed) end
  elseif not typed:find("[%.:]") then
    for _, name in ipairs(M_.primitives.names(M_.primitives.variables())) do add(found, seen, name, typed) end
  end
  return begin, found
end

local function in_code(M_, line)
  local count = #line.tokens
  local last = line.tokens[count]
  local typed, begin = "", #line.text + 1
  if is_word(last) and last.last == #line.text then
    typed, begin, count = text_of(line, count), last.first, count - 1
  elseif last and last.kind == "number" then
    return begin, {}
  end
  local separator = text_of(line, count)
  local found, seen = {}, {}
  if separator == "." or separator == ":" then
    local links = chain_before(line, count - 1)
    local at = links and resolve(M_, links)
    if at then add_members(M_, found, seen, at, typed, separator) end
    return begin, found
  end
  local open = open_bracket(line, count)
  if open and text_of(line, open) == "{" and (separator == "{" or separator == "," or separator == ";") then
    local class = options_at(M_, line, open)
    local entry = class and M_.index().entries[class]
    for _, field in ipairs(entry and entry.fields or {}) do add(found, seen, field.name, typed) end
    if #found > 0 then
      for i, word in ipairs(found) do found[i] = word .. " = " end
      return begin, found
    end
  end
  if typed == "" then return begin, {} end
  for _, name in ipairs(M_.primitives.names(M_.primitives.variables())) do add(found, seen, name, typed) end
  for _, word in ipairs(keywords) do add(found, seen, word, typed) end
  return begin, found
end

local function line_of(M_, text)
  return { text = text, tokens = M_.primitives.tokens(text) }
end

-- The code in a line of the prompt: behind a command such as ":time", or all of it. Nil for a command without code.
local function code_in(text)
  local command = text:match("^%s*:(%a+)%s")
  if not command then return 1 end
  if command == "time" or command == "bench" then return text:match("^%s*:%a+%s+()") end
end

--- Makes the completer of a session.
---@param primitives table the command's side of the prompt
---@param index fun():table the index of annotations
---@param class_of fun(value):string? the class of a value, as the annotations name it
---@return table completer `complete(before) -> begin, words` and `hint(before) -> text`
---@mark ephemeral
function M.new(primitives, index, class_of)
  local self = { primitives = primitives, index = index, class_of = class_of, commands = {}, lua_names = {} }

  function self.complete(before)
    local begin, found
    if before:find("^%s*%?") then begin, found = in_help(self, before)
    elseif before:find("^%s*:%a*$") then
      local typed = before:match(":(%a*)$")
      begin, found = #before - #typed + 1, {}
      for _, name in ipairs(self.commands) do add(found, {}, name, typed) end
    elseif not code_in(before) then
      local typed = before:match("(%S*)$")
      begin, found = #before - #typed + 1, primitives.files(typed)
    else
      local offset = code_in(before)
      local line = line_of(self, before:sub(offset))
      local last = line.tokens[#line.tokens]
      if last and last.open and last.kind == "comment" then begin, found = #line.text + 1, {}
      elseif last and last.open then begin, found = in_string(self, line)
      else begin, found = in_code(self, line) end
      begin = begin + offset - 1
    end
    table.sort(found)
    return begin, found
  end

  -- The signature of the call in which the text ends, or the options of the table in it.
  function self.hint(before)
    local offset = not before:find("^%s*%?") and code_in(before)
    if not offset or not before:find("[%(%{]") then return "" end
    local line = line_of(self, before:sub(offset))
    local last = line.tokens[#line.tokens]
    if not last or (last.open and last.kind == "comment") then return "" end
    local open = open_bracket(line, #line.tokens)
    if open and text_of(line, open) == "{" then
      local class = options_at(self, line, open)
      local entry = class and index().entries[class]
      if entry and #(entry.fields or {}) > 0 then
        local names = {}
        for i, field in ipairs(entry.fields) do names[i] = field.name .. (field.optional and "?" or "") end
        return class .. ": " .. table.concat(names, ", ")
      end
      open = open_bracket(line, open - 1)
    end
    while open and text_of(line, open) ~= "(" do open = open_bracket(line, open - 1) end
    local entry = open and callee(self, line, open)
    if not entry then return "" end
    local returned = entry.returns[1] and " -> " .. entry.returns[1].type or ""
    return entry.signature .. returned
  end

  return self
end

return M
