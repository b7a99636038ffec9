--- What people who come from IPython, Julia and CuPy type, and how it is said here: hints for entries that do not
--- compile, and for names that are not set.

local M = {}

-- The commands of the prompt that do what a magic of IPython's or a macro of Julia's does.
local commands = { time = "time", timeit = "bench", btime = "bench", benchmark = "bench", run = "load", who = "who",
  whos = "who", history = "history", hist = "history", edit = "edit", sx = "sh" }

-- Lua patterns that an entry has, with what the compiler says about it ("": anything), and the hint.
local forms = {
  { "^%s*>>>", "", "paste the code without the prompt before it" },
  { "^%s*In %[%d*%]:", "", "paste the code without the prompt before it" },
  { "^%s*julia>", "", "paste the code without the prompt before it" },
  { "^%s*import%s", "", 'a module: local name = require "name"; Rille is here as rille' },
  { "^%s*from%s+%S+%s+import%s", "", 'a module: local name = require "name"; Rille is here as rille' },
  { "^%s*using%s", "", 'a module: local name = require "name"; Rille is here as rille' },
  { "^%s*def%s", "", "function f(x) return x ^ 2 end" },
  { "^%s*[%a_][%w_]*%([%w_%s,]*%)%s*=[^=]", "", "function f(x) return x ^ 2 end" },
  { "%[%[.-%w%]%]", "", "]] ends a text of [[ .. ]], also in s[x[i]]: write [=[ .. ]=]" },
  { "%[[^%[%]]*%sfor%s", "", "a list is filled in a loop: t = {}; for i = 1, n do t[i] = f(i) end" },
  { "%([^%(%)]*[%a_][%w_]*%s*=[^=]", "'='", "named arguments stand in braces: f { dim = 1 }" },
  { "%[[^%[%]]*[,:][^%[%]]*%]", "", "x[{ 1, {2, 3} }] of a tensor; t[1][2] of a table" },
  { "[%w_%]%)]%s*[%+%-%*/]=", "", "x = x + 1" },
  { "!=", "", "~= means not equal" },
  { "%*%*", "", "^ is the power" },
  { "&&", "", "it is written `and`" },
  { "||", "", "it is written `or`" },
  { "![%a_%(]", "", "it is written `not x`" },
  { "//", "", "math.floor(a / b)" },
  { "%s@%s", "", "x:matmul(y)" },
  { "^%s*if%s.*:%s*$", "", "if x then .. end" },
  { "^%s*for%s.*:%s*$", "", "for i = 1, n do .. end; for i, value in ipairs(list) do .. end" },
}

--- The hint for an entry that does not compile.
---@param source string the entry
---@param said string the compiler's message
---@return string|nil hint
---@mark deterministic
function M.of_syntax(source, said)
  local sign, word = source:match("^%s*([%%@])%s*(%a+)")
  if sign then
    if commands[word] then return (":%s does that here; :help lists the commands"):format(commands[word]) end
    return ":help lists the commands of the prompt"
  end
  for _, form in ipairs(forms) do
    if source:find(form[1]) and said:find(form[2], 1, true) then return form[3] end
  end
  return nil
end

local named = {
  len = "#t is the length of a list, x:numel() the size of a tensor",
  range = "for i = 1, n do .. end; a tensor: rille.device():arange { n }",
  ["True"] = "true", ["False"] = "false", None = "nil", null = "nil", nothing = "nil",
  ls = "!ls: what follows ! is run by the shell", pwd = "!pwd: what follows ! is run by the shell",
  cat = "!cat FILE: what follows ! is run by the shell", cd = "Rille stays in the folder in which it was started",
  sum = "x:sum() of a tensor", zeros = "rille.device():zeros { 2, 3 }", ones = "rille.device():ones { 2, 3 }",
  rand = "rille.device():rand { 2, 3 }", randn = "rille.device():randn { 2, 3 }",
  println = "print(x)", display = "print(x)", dir = "?x lists the methods of what x holds",
}
for _, module in ipairs { "np", "numpy", "torch", "cp", "cupy", "jnp", "jax", "nn" } do
  named[module] = "tensors are made by a device: d = rille.device(); d:zeros { 2, 3 }; layers are in rille.nn"
end
for _, module in ipairs { "plt", "matplotlib" } do named[module] = "rille.plot(losses)" end

--- The hint for a name that is not set.
---@param name string the name
---@return string|nil hint
---@mark deterministic
function M.of_name(name)
  if named[name] then return named[name] end
  local rille = require "rille"
  local there, value = pcall(function() return rille[name] end)
  if there and value ~= nil then return "did you mean rille." .. name .. "?" end
  return nil
end

return M
