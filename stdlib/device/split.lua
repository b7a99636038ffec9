-- Internal: comm:split. Documented in meta/communicator.lua.
local native = require "rille.native"
local rille = require "rille"

local address_bytes = 512

local function check_whole(n, what)
  if type(n) == "number" and n % 1 == 0 and math.abs(n) < 2 ^ 53 then return end
  rille.error { kind = "invalid", message = ("comm:split: %s = %s; a whole number is needed"):format(what, tostring(n)),
    hint = "ranks with the same color form a group, in the order of their keys; without a color a rank is in none" }
end

-- Returns the ranks with this color, ordered by key, then by rank.
local function members_of(all, color)
  local members = {}
  for i, given in ipairs(all) do
    if given[1] == 1 and given[2] == color then members[#members + 1] = { rank = i - 1, key = given[3] } end
  end
  table.sort(members, function(a, b)
    if a.key ~= b.key then return a.key < b.key end
    return a.rank < b.rank
  end)
  return members
end

-- Sends this rank's text to all ranks; returns the texts of all ranks.
local function tell(comm, dev, text)
  local bytes = {}
  for i = 1, address_bytes do bytes[i] = text:byte(i) or 0 end
  local all = comm:all_gather(dev:tensor({ bytes }, { dtype = "i32" })):totable()
  for i, list in ipairs(all) do all[i] = string.char(unpack(list)):match "^%Z*" end
  return all
end

local function split(comm, color, key)
  if color == false then color = nil end
  if color ~= nil then check_whole(color, "color") end
  if key ~= nil then check_whole(key, "key") end
  if comm.rank == nil then rille.error { kind = "state", message = "comm:split: the communicator is closed" } end
  local dev, rank = rille.device(comm.device), comm.rank
  local mine = dev:tensor({ { color and 1 or 0, color or 0, key or rank } }, { dtype = "f64" })
  local all = comm:all_gather(mine):totable()
  local members = color and members_of(all, color) or {}
  local listener, address = nil, ""
  if #members > 1 and members[1].rank == rank then
    local ok, found, at = pcall(native.ranks_listen, comm)
    if ok then listener, address = found, at
    else address = ("!%s"):format(type(found) == "table" and found.message or found):sub(1, address_bytes) end
  end
  local told = tell(comm, dev, address)
  if not color then return nil end
  local at = told[members[1].rank + 1]
  if at:sub(1, 1) == "!" then
    rille.error { kind = "network", message = ("comm:split: rank %d cannot be reached: %s"):format(members[1].rank,
      at:sub(2)) }
  end
  local number
  for i, member in ipairs(members) do if member.rank == rank then number = i - 1 end end
  return native.ranks_group(comm, number, #members, at, listener)
end

return { split = split }
