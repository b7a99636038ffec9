-- Internal: reads the numbers of rille.estimate's options, and refuses impossible ones.
local rille = require "rille"

local read = {}

function read.invalid(message, hint)
  rille.error { kind = "invalid", message = "rille.estimate: " .. message, hint = hint }
end

local powers = { k = 1e3, m = 1e6, g = 1e9, b = 1e9, t = 1e12 }

-- Reads 124e6, "124M", "10B" or "1.5T" as a number; nil stays nil. The number must be at least `least`; without
-- `least`, above 0.
function read.count(name, value, least)
  if value == nil then return nil end
  local n = type(value) == "number" and value or nil
  if type(value) == "string" then
    local digits, unit = value:match("^%s*([%d%.]+[eE]?[%d]*)%s*(%a?)%s*$")
    n = tonumber(digits)
    if n and unit ~= "" then n = powers[unit:lower()] and n * powers[unit:lower()] end
  end
  if n and n == n and n < math.huge and (least and n >= least or not least and n > 0) then return n end
  read.invalid(("%s = %s; a number %s is needed"):format(name, tostring(value),
    least and ("from %g on"):format(least) or "above 0"), "such as 2e6, \"124M\", \"10B\" or \"1.5T\"")
end

local seconds = { ms = 1e-3, s = 1, m = 60, h = 3600, d = 86400, w = 604800 }

-- Reads "24h", "500ms", or a number of seconds, as seconds; nil stays nil.
function read.seconds(name, value)
  if value == nil then return nil end
  local n = type(value) == "number" and value or nil
  if type(value) == "string" then
    local digits, unit = value:match("^%s*([%d%.]+)%s*(%a+)%s*$")
    n = tonumber(digits)
    n = n and seconds[unit] and n * seconds[unit]
  end
  if n and n > 0 and n < math.huge then return n end
  read.invalid(("%s = %s; a duration is needed"):format(name, tostring(value)), "such as \"24h\", \"90s\" or \"200ms\"")
end

function read.whole(name, value)
  if value == nil then return nil end
  local n = read.count(name, value)
  if n % 1 ~= 0 then read.invalid(("%s = %s; a whole number is needed"):format(name, tostring(value))) end
  return n
end

-- Reads a fraction from 0 to 1.
function read.share(name, value)
  if type(value) == "number" and value >= 0 and value <= 1 then return value end
  read.invalid(("%s = %s; a number from 0 to 1 is needed"):format(name, tostring(value)))
end

-- Reads one of the words that are the keys of `choices`, in lower case; nil gives `otherwise`.
function read.word(name, value, choices, otherwise)
  if value == nil then return otherwise end
  if type(value) == "string" and choices[value:lower()] ~= nil then return value:lower() end
  local words = {}
  for word in pairs(choices) do words[#words + 1] = word end
  table.sort(words)
  local near = type(value) == "string" and require("rille.native").did_you_mean(value:lower(), words) or ""
  read.invalid(("%s = %s is unknown"):format(name, tostring(value)),
    (near ~= "" and near .. " " or "") .. "there are " .. table.concat(words, ", "))
end

return read
