--- What the prompt tells about Lua's own functions: `?string.format`. The full text is the manual of Lua 5.1.

local M = {}

local rows = {
  { "assert", "assert(value, [message])", "returns its arguments; raises `message` if `value` is false or nil" },
  { "collectgarbage", "collectgarbage([what])", '"count" gives the KiB in use, "collect" frees what is unused' },
  { "dofile", "dofile(path)", "runs a file" },
  { "error", "error(message, [level])", "raises an error; level 2 names the caller's line, 0 no line" },
  { "getmetatable", "getmetatable(value)", "the metatable of a value, or nil" },
  { "ipairs", "ipairs(table)", "for i, value in ipairs(t): 1, 2, .. up to the first nil" },
  { "load", "load(text, [name, mode, environment])", "compiles a text: a function, or nil and a message" },
  { "next", "next(table, [key])", "the pair after `key`; without one, the first" },
  { "pairs", "pairs(table)", "for key, value in pairs(t): all pairs; Rille gives them in a fixed order" },
  { "pcall", "pcall(f, ...)", "calls f: true and its results, or false and the error" },
  { "print", "print(...)", "writes its arguments, with tabs between" },
  { "rawequal", "rawequal(a, b)", "whether both are the same, without metamethods" },
  { "rawget", "rawget(table, key)", "a field, without metamethods" },
  { "rawset", "rawset(table, key, value)", "sets a field, without metamethods" },
  { "require", "require(name)", "loads a module once and returns it" },
  { "select", 'select(n, ...) or select("#", ...)', "the arguments from the n-th on, or their number" },
  { "setmetatable", "setmetatable(table, metatable)", "sets the metatable and returns the table" },
  { "tonumber", "tonumber(value, [base])", "the number that a text stands for, or nil" },
  { "tostring", "tostring(value)", "a value as text" },
  { "type", "type(value)", '"nil", "number", "string", "boolean", "table", "function", "userdata" or "thread"' },
  { "unpack", "unpack(list, [first, last])", "the items of a list as values" },
  { "xpcall", "xpcall(f, handler, ...)", "as pcall; the handler makes the error's text where it was raised" },
  { "string.byte", "s:byte([first, last])", "the bytes of a text as numbers" },
  { "string.char", "string.char(...)", "a text from bytes" },
  { "string.find", "s:find(pattern, [start, plain])", "first and last byte of a match, then its captures; or nil" },
  { "string.format", "s:format(...)", "%d whole number, %g %.3f number, %s text, %q quoted, %5s and %-5s padded" },
  { "string.gmatch", "s:gmatch(pattern)", "for a, b in s:gmatch(..): each match's captures" },
  { "string.gsub", "s:gsub(pattern, by, [most])", "replaces matches by a text, or what a table or function gives" },
  { "string.len", "#s", "bytes of a text" },
  { "string.lower", "s:lower()", "in small letters" },
  { "string.match", "s:match(pattern, [start])", "the captures of the first match, or nil" },
  { "string.rep", "s:rep(n)", "the text n times" },
  { "string.reverse", "s:reverse()", "the bytes in reverse order" },
  { "string.sub", "s:sub(first, [last])", "a part of a text; -1 is the last byte" },
  { "string.upper", "s:upper()", "in capitals" },
  { "table.concat", "table.concat(list, [separator, first, last])", "the items as one text" },
  { "table.insert", "table.insert(list, [at,] value)", "adds an item at the end, or before item `at`" },
  { "table.remove", "table.remove(list, [at])", "takes out an item, by default the last, and returns it" },
  { "table.sort", "table.sort(list, [less])", "sorts in place; less(a, b) says whether a comes first" },
  { "math.abs", "math.abs(x)", "the magnitude" },
  { "math.ceil", "math.ceil(x)", "the least whole number that is not less" },
  { "math.cos", "math.cos(x)", "the cosine of radians" },
  { "math.exp", "math.exp(x)", "e to the power of x" },
  { "math.floor", "math.floor(x)", "the greatest whole number that is not more" },
  { "math.fmod", "math.fmod(a, b)", "the remainder with the sign of a" },
  { "math.huge", "math.huge", "infinity" },
  { "math.log", "math.log(x)", "the natural logarithm" },
  { "math.max", "math.max(...)", "the greatest argument" },
  { "math.min", "math.min(...)", "the least argument" },
  { "math.pi", "math.pi", "3.14159.." },
  { "math.random", "math.random([first,] [last])", "from 0 to below 1; from 1 to `last`; from `first` to `last`" },
  { "math.sin", "math.sin(x)", "the sine of radians" },
  { "math.sqrt", "math.sqrt(x)", "the square root" },
  { "math.tan", "math.tan(x)", "the tangent of radians" },
  { "io.lines", "io.lines(path)", "for line in io.lines(path)" },
  { "io.open", 'io.open(path, [mode])', 'a file, or nil and a message; mode "r", "w", "a", with "b" for bytes' },
  { "io.read", "io.read([what])", "reads standard input" },
  { "io.write", "io.write(...)", "writes texts as they are" },
  { "os.clock", "os.clock()", "seconds of processor time" },
  { "os.date", "os.date([format, time])", "a time as text" },
  { "os.getenv", "os.getenv(name)", "a variable of the environment, or nil" },
  { "os.remove", "os.remove(path)", "deletes a file" },
  { "os.rename", "os.rename(from, to)", "renames a file" },
  { "os.time", "os.time([date])", "seconds since 1970" },
  { "os.tmpname", "os.tmpname()", "a name for a temporary file" },
  { "coroutine.create", "coroutine.create(f)", "a coroutine, which has not begun" },
  { "coroutine.resume", "coroutine.resume(co, ...)", "runs it to its next yield: true, values; or false, error" },
  { "coroutine.status", "coroutine.status(co)", '"running", "suspended", "normal" or "dead"' },
  { "coroutine.wrap", "coroutine.wrap(f)", "a function that resumes the coroutine at each call" },
  { "coroutine.yield", "coroutine.yield(...)", "leaves the coroutine; returns what it is resumed with" },
  { "bit.band", "bit.band(...)", "bitwise and" },
  { "bit.bnot", "bit.bnot(x)", "bitwise not" },
  { "bit.bor", "bit.bor(...)", "bitwise or" },
  { "bit.bxor", "bit.bxor(...)", "bitwise exclusive or" },
  { "bit.lshift", "bit.lshift(x, n)", "shifts left" },
  { "bit.rshift", "bit.rshift(x, n)", "shifts right" },
}

local by_name = {}
for _, row in ipairs(rows) do by_name[row[1]] = row end

--- The names of Lua's functions.
---@return string[] names
---@mark deterministic
function M.names()
  local names = {}
  for i, row in ipairs(rows) do names[i] = row[1] end
  return names
end

--- Describes a function of Lua's, or a library of it.
---@param name string as in "string.format" or "string"
---@return string? text nil for another name
---@mark deterministic
function M.describe(name)
  local row = by_name[name] or by_name["string." .. name] or by_name["table." .. name] or by_name["math." .. name]
  if row then return ("%s  -- Lua\n  %s"):format(row[2], row[3]) end
  local lines = {}
  for _, each in ipairs(rows) do
    if each[1]:find("^" .. name:gsub("%W", "%%%0") .. "%.") then
      lines[#lines + 1] = ("  %-45s %s"):format(each[2], each[3])
    end
  end
  return lines[1] and name .. "  -- Lua\n" .. table.concat(lines, "\n") or nil
end

return M
