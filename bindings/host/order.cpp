// Lua code: pairs and next in an order that a resumed run repeats, and a table.sort whose comparator may wait. Runs
// once per Lua state, before prelude.cpp, which exports these functions.
#include "bindings/host/prelude.hpp"

namespace rille::host {

const char* const order_source = R"lua(
local core, behind = ...  -- behind: the sealed table that scripts see -> our module
local raw_next, raw_sort, type, rawget, setmetatable = next, table.sort, type, rawget, setmetatable
local sort_values, sort = core.sort
local raise = core.raise

-- Numbers, then strings, then booleans, then objects by creation.
local rank = { number = 1, string = 2, boolean = 3, userdata = 4, table = 5, ["function"] = 5, thread = 5, cdata = 5,
  lightuserdata = 5 }
local number_of = core.object_number

local function before(a, b)
  local ta, tb = type(a), type(b)
  if ta ~= tb then return rank[ta] < rank[tb] end
  if ta == "boolean" then return not a and b end
  if ta == "userdata" then return number_of(a) < number_of(b) end
  return a < b
end

local function sorted_keys(t)
  local keys, n, others, kind, mixed = {}, 0, 0, nil, false
  for k in raw_next, t do
    n = n + 1
    keys[n] = k
    local tk = type(k)
    if kind ~= tk then mixed = kind ~= nil; kind = kind or tk end
    if rank[tk] >= 4 and not (tk == "userdata" and number_of(k)) then others = others + 1 end
  end
  if others > 1 then
    raise("invalid",
      "pairs over a table with several tables or functions as keys: they have no order that a resumed run would repeat",
      "use a list, or strings as keys")
  end
  if n > 1 then
    if mixed or not sort_values(keys) then sort(keys, before) end
  end
  return keys, n
end

local function is_sequence(t)
  local n = 0
  for k in raw_next, t do
    n = n + 1
    if k ~= n then return false end
  end
  return true, n
end

local function pairs(t)
  if type(t) ~= "table" then raise("invalid", "pairs: expected a table, got " .. core.describe(t)) end
  t = behind[t] or t
  local sequence, n = is_sequence(t)
  local i = 0
  if sequence then
    return function()
      while i < n do
        i = i + 1
        local v = rawget(t, i)
        if v ~= nil then return i, v end
      end
    end, t, nil
  end
  local keys
  keys, n = sorted_keys(t)
  return function()
    while i < n do
      i = i + 1
      local k = keys[i]
      local v = rawget(t, k)
      if v ~= nil then return k, v end
    end
  end, t, nil
end

-- next keeps one sorted list of keys per table that it has walked, so that `next(t) == nil` stays cheap: any remaining
-- key of the list will do, as long as the choice depends on the program alone.
local walks = setmetatable({}, { __mode = "k" })

local function walk_from(t, walk, i)
  local keys = walk.keys
  for j = i, walk.n do
    local v = rawget(t, keys[j])
    if v ~= nil then
      walk.at = j
      return keys[j], v
    end
  end
end

local function next(t, key)
  if type(t) ~= "table" then raise("invalid", "next: expected a table, got " .. core.describe(t)) end
  t = behind[t] or t
  local walk = walks[t]
  if key == nil then
    local first = raw_next(t)
    if first == nil then return nil end
    if raw_next(t, first) == nil then return first, rawget(t, first) end
    if rawget(t, 1) ~= nil and not walk then return 1, rawget(t, 1) end
    if walk then
      local k, v = walk_from(t, walk, 1)
      if k ~= nil then return k, v end
    end
    walk = {}
    walk.keys, walk.n = sorted_keys(t)
    walks[t] = walk
    return walk_from(t, walk, 1)
  end
  if not walk then
    walk = {}
    walk.keys, walk.n = sorted_keys(t)
    walks[t] = walk
  end
  local at = walk.at
  if not at or walk.keys[at] ~= key then
    at = nil
    for j = 1, walk.n do if walk.keys[j] == key then at = j break end end
    if not at then
      walk.keys, walk.n = sorted_keys(t)
      for j = 1, walk.n do if walk.keys[j] == key then at = j break end end
      if not at then raise("invalid", "next: the table has no key " .. core.describe(key)) end
    end
  end
  local k, v = walk_from(t, walk, at + 1)
  if k == nil then walks[t] = nil end
  return k, v
end

-- A merge sort, so that the comparator may wait.
function sort(t, less)
  if type(t) ~= "table" then raise("invalid", "table.sort: expected a table, got " .. core.describe(t)) end
  local n = #t
  if less == nil then
    local kind = type(t[1])
    if kind == "number" or kind == "string" then
      if sort_values(t) then return end
      return raw_sort(t)  -- which raises, unless metamethods compare them
    end
    less = function(a, b) return a < b end
  elseif type(less) ~= "function" then
    raise("invalid", "table.sort: expected a function to compare with, got " .. core.describe(less))
  end
  local from, to = {}, {}
  for i = 1, n do from[i] = t[i] end
  local width = 1
  while width < n do
    for low = 1, n, 2 * width do
      local mid, high = math.min(low + width, n + 1), math.min(low + 2 * width, n + 1)
      local i, j = low, mid
      for k = low, high - 1 do
        if i < mid and (j >= high or not less(from[j], from[i])) then
          to[k] = from[i]
          i = i + 1
        else
          to[k] = from[j]
          j = j + 1
        end
      end
    end
    from, to = to, from
    width = width * 2
  end
  for i = 1, n do t[i] = from[i] end
end

return pairs, next, sort
)lua";

}  // namespace rille::host
