-- run: ephemeral
-- What stdlib/meta/rille.lua documents and what the table `rille` has are the same words.
local rille = require "rille"
local meta = require "rille.meta.rille"
local tap = require "tap"

local function names(table, kind)
  local list = {}
  for key, value in pairs(table) do
    if type(value) == kind then list[#list + 1] = key end
  end
  return list
end

tap.test("every function of rille is documented", function()
  local seen = names(rille, "function")
  tap.ok(#seen > 10, "the table of words is empty")
  for _, name in ipairs(seen) do tap.ok(meta[name], "rille." .. name .. " has no entry in stdlib/meta/rille.lua") end
end)

tap.test("every documented function exists", function()
  for _, name in ipairs(names(meta, "function")) do
    local exists = pcall(function() return rille[name] end)
    tap.ok(exists, "stdlib/meta/rille.lua documents rille." .. name .. ", which does not exist")
  end
end)

tap.done()
