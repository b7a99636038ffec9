// Lua code: pairs and next in an order that a resumed run repeats, and a table.sort whose comparator may wait. Long
// work over a large table is an interpreted loop, which can give way, around short functions, which may be compiled.
// Runs once per Lua state, before prelude.cpp, which exports these functions.
#include "bindings/host/prelude.hpp"

namespace rille::host {

const char* const order_source = R"lua(
local core, behind = ...  -- behind: the sealed table that scripts see -> our module
local raw_next, raw_sort, type, rawget, setmetatable = next, table.sort, type, rawget, setmetatable
local raise, interpret = core.raise, core.interpret
local begin_sort, sort_piece = core.sort, core.sort_piece
local min = math.min
local some = 8192  -- elements of a table that are handled at once
local sort

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

local finish_sort = interpret(function(sorted, sorter, t, hold)
  while sorted == nil do sorted = sort_piece(sorter, t, hold) end
  return sorted
end)

-- Whether t is sorted now: its elements are all numbers or all strings.
local function sort_values(t) return finish_sort(begin_sort(t)) end

-- Appends some keys, those behind k, and returns the last one; nil: it was the last of t. `found` tells about all keys.
local function take_keys(t, k, keys, found)
  local n, others, kind, mixed = found.n, found.others, found.kind, found.mixed
  for _ = 1, some do
    k = raw_next(t, k)
    if k == nil then break end
    n = n + 1
    keys[n] = k
    local tk = type(k)
    if kind ~= tk then mixed = kind ~= nil; kind = kind or tk end
    if rank[tk] >= 4 and not (tk == "userdata" and number_of(k)) then others = others + 1 end
  end
  found.n, found.others, found.kind, found.mixed = n, others, kind, mixed
  return k
end

local all_keys = interpret(function(t, keys, found)
  local k
  repeat k = take_keys(t, k, keys, found) until k == nil
end)

-- Keys of several types: each type is sorted by itself.
local arrange = interpret(function(keys, n)
  local kinds, sizes = { {}, {}, {}, {}, {} }, { 0, 0, 0, 0, 0 }
  for i = 1, n do
    local r = rank[type(keys[i])]
    local size = sizes[r] + 1
    sizes[r], kinds[r][size] = size, keys[i]
  end
  local at = 0
  for r = 1, 5 do
    local list = kinds[r]
    if sizes[r] > 1 and not sort_values(list) then sort(list, before) end
    for i = 1, sizes[r] do keys[at + i] = list[i] end
    at = at + sizes[r]
  end
end)

local function sorted_keys(t)
  local keys, found = {}, { n = 0, others = 0, kind = nil, mixed = false }
  all_keys(t, keys, found)
  if found.others > 1 then
    raise("invalid",
      "pairs over a table with several tables or functions as keys: they have no order that a resumed run would repeat",
      "use a list, or strings as keys")
  end
  local n = found.n
  if n > 1 then
    if found.mixed then arrange(keys, n)
    elseif not sort_values(keys) then sort(keys, before) end
  end
  return keys, n
end

-- Whether the keys behind n go on from n, and the last that does; a third result: it is the last of t.
local function more_of_sequence(t, n)
  local k = n > 0 and n or nil
  for _ = 1, some do
    k = raw_next(t, k)
    if k == nil then return true, n, true end
    n = n + 1
    if k ~= n then return false, n end
  end
  return true, n
end

local is_long_sequence = interpret(function(t, n)
  local is, over = true, false
  while is and not over do is, n, over = more_of_sequence(t, n) end
  return is, n
end)

local function is_sequence(t)
  local is, n, over = more_of_sequence(t, 0)
  if is and not over then return is_long_sequence(t, n) end
  return is, n
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

local function copy_some(from, to, first, last)
  for i = first, last do to[i] = from[i] end
end

local function copy(from, to, n)
  for first = 1, n, some do copy_some(from, to, first, min(first + some - 1, n)) end
end
interpret(copy)

-- Merges the runs [i, mid) and [j, high) of `from` into `to`, from k to last; returns how far it has come.
local function merge(from, to, less, i, mid, j, high, k, last)
  for at = k, last do
    if i < mid and (j >= high or not less(from[j], from[i])) then
      to[at] = from[i]
      i = i + 1
    else
      to[at] = from[j]
      j = j + 1
    end
  end
  return i, j
end

-- Merges the pairs of runs from `first` on, which end before or with `last`.
local function merge_runs(from, to, less, width, first, last)
  for low = first, last, 2 * width do
    local mid, high = min(low + width, last + 1), min(low + 2 * width, last + 1)
    merge(from, to, less, low, mid, mid, high, low, high - 1)
  end
end

local merge_all = interpret(function(from, to, less, n, width)
  if 2 * width <= some then
    for first = 1, n, some do merge_runs(from, to, less, width, first, min(first + some - 1, n)) end
    return
  end
  for low = 1, n, 2 * width do
    local mid, high = min(low + width, n + 1), min(low + 2 * width, n + 1)
    local i, j = low, mid
    for k = low, high - 1, some do i, j = merge(from, to, less, i, mid, j, high, k, min(k + some, high) - 1) end
  end
end)

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
  copy(t, from, n)
  local width = 1
  while width < n do
    merge_all(from, to, less, n, width)
    from, to = to, from
    width = width * 2
  end
  copy(from, t, n)
end

return pairs, next, sort
)lua";

}  // namespace rille::host
