-- Rille's side of tokenizers_test.py and of tests/peer/tokenizers: what a tokenizer makes of texts and of ids. The
-- cases come as lines, "text HEX" or "ids 1,2,3"; the answers are lines, too.
local rille = require "rille"

local args = rille.args { tokenizer = "", cases = "", out = "" }

local function hex(bytes) return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
local function unhex(text) return (text:gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end)) end

return rille.step("answers", { args = args }, function()
  local t = rille.data.tokenizer(args.tokenizer)
  local out = assert(io.open(args.out, "w"))
  for line in assert(io.open(args.cases)):lines() do
    local kind, rest = line:match("^(%a+) (.*)$")
    if kind == "text" then
      local text = unhex(rest)
      local ids = t:encode(text, { special = true })
      local whole = t:encode(text, { special = true, before = true, behind = true })
      local plain = t:encode(text)
      out:write(table.concat(ids, ","), ";", table.concat(whole, ","), ";", table.concat(plain, ","), ";",
        hex(t:decode(ids)), "\n")
    else
      local ids = {}
      for id in rest:gmatch("%d+") do ids[#ids + 1] = tonumber(id) end
      out:write(hex(t:decode(ids)), "\n")
    end
  end
  out:close()
  return { size = t.size, special = t.special }
end)
