-- run: ephemeral
local rille = require "rille"
local shares = require "rille.tools.shares"
local tap = require "tap"
local dev = rille.device()

local function state(shapes)
  local list = {}
  for i, shape in ipairs(shapes) do
    list[i] = { part = "model", name = "t" .. i, tensor = dev:zeros(shape) }
  end
  return list
end

-- Returns the bytes of a share; adds its rows to `found` by name.
local function note(share, rank, found)
  local bytes = 0
  for _, entry in ipairs(share) do
    local rows = entry.tensor:dim() > 0 and entry.tensor:size(1) or 1
    found[entry.name] = found[entry.name] or {}
    table.insert(found[entry.name], { rank = rank, first = entry.first or 0, rows = rows, of = entry.of or rows })
    bytes = bytes + entry.tensor:numel() * (entry.tensor.dtype == "bf16" and 2 or 4)
  end
  return bytes
end

tap.test("shares are the whole state, cut between rows, with an equal number of bytes", function()
  local list = state { { 1000, 7 }, { 3 }, {}, { 0, 5 }, { 4, 0 }, { 1, 9000 }, { 333, 2, 2, dtype = "bf16" },
    { 50, 40 } }
  for world = 1, 9 do
    local found, least, most = {}, math.huge, 0
    for rank = 0, world - 1 do
      local bytes = note(shares.of(list, rank, world), rank, found)
      least, most = math.min(least, bytes), math.max(most, bytes)
    end
    for _, entry in ipairs(list) do
      local at = 0
      local rows = entry.tensor:dim() > 0 and entry.tensor:size(1) or 1
      for _, piece in ipairs(found[entry.name]) do
        tap.equal({ entry.name, world, piece.first, piece.of }, { entry.name, world, at, rows })
        at = at + piece.rows
      end
      tap.equal({ entry.name, world, at }, { entry.name, world, rows })
    end
    tap.ok(most - least <= 2 * 36000, ("%d: %d to %d bytes"):format(world, least, most))  -- two of the longest row
  end
end)

tap.test("more ranks than rows: some have nothing to write", function()
  local list, found, idle = state { { 2 }, { 1 } }, {}, 0
  for rank = 0, 7 do
    if note(shares.of(list, rank, 8), rank, found) == 0 then idle = idle + 1 end
  end
  tap.equal(idle, 5)
  tap.equal({ #found.t1, #found.t2 }, { 2, 1 })
end)

tap.done()
