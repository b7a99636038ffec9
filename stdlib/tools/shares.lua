-- Internal: ranks write a checkpoint together. Each writes an equal share of the bytes, cut between rows of tensors.
-- Where all see one folder, they write there, and rank 0 publishes it when every rank has written its share. Otherwise,
-- if their machines send checkpoints to a store, each rank writes to its own folder, and the runner puts the shares
-- together in the store.
local native = require "rille.native"
local places = require "rille.tools.places"
local random = require "rille.tools.random"

local Share = {}
Share.__index = Share

local shares = {}

local element_bytes = { bool = 1, u8 = 1, i8 = 1, i32 = 4, i64 = 8, f16 = 2, bf16 = 2, f32 = 4, f64 = 8 }

local function bytes_of(tensor) return tensor:numel() * element_bytes[tensor.dtype] end

-- Returns what rank `rank` of `world` writes of a list of { part =, name =, tensor = }: whole tensors, and slices with
-- `first`, their first row counted from 0, and `of`, the rows of the whole tensor.
function shares.of(list, rank, world)
  local total = 0
  for _, entry in ipairs(list) do total = total + bytes_of(entry.tensor) end
  local from, to, at, out = total * rank / world, total * (rank + 1) / world, 0, {}
  for _, entry in ipairs(list) do
    local tensor = entry.tensor
    local size, rows = bytes_of(tensor), tensor:dim() > 0 and tensor:size(1) or 1
    -- The row that begins nearest to a place in the bytes of all tensors: one rank's end is the next one's beginning.
    local function row(place) return math.max(0, math.min(rows, math.floor((place - at) / size * rows + 0.5))) end
    local first, last = 0, rank == 0 and rows or 0
    if size > 0 then first, last = row(from), row(to) end
    if last - first == rows and (size > 0 or rank == 0) then
      out[#out + 1] = entry
    elseif last > first then
      out[#out + 1] = { part = entry.part, name = entry.name, first = first, of = rows,
        tensor = tensor:detach():narrow(1, first + 1, last - first) }
    end
    at = at + size
  end
  return out
end

-- Called on every rank. Returns "together" where all ranks see the folder `name`, "apart" where they do not and every
-- rank's machine sends checkpoints to a store, otherwise nil.
local function way(ranks, options, store, name)
  local sees, sends = true, true
  for _, rank in ipairs(ranks:gather { native.share_sees(options.directory, name) and 1 or 0,
      native.sends_checkpoints and not store and 1 or 0 }) do
    sees, sends = sees and rank[1] == 1, sends and rank[2] == 1
  end
  return sees and "together" or sends and "apart" or nil
end

-- Called on every rank: begins to write the state. options: as in checkpoint.begin; store: the address to which the
-- training sends checkpoints by itself, if any. Returns nil where rank 0 writes alone; then nothing was begun.
function shares.begin(ranks, state, options, store)
  local gathering, name
  if ranks.rank == 0 then gathering, name = native.share_begin(options.directory, options.step) end
  name = ranks:tell(name)
  local how = way(ranks, options, store, name)
  if how ~= "together" and gathering then native.share_end(gathering) end
  if not how then return nil end
  local list, plain = places.tensors_of(state)
  local self = setmetatable({ ranks = ranks, apart = how == "apart", gathering = gathering, options = options }, Share)
  -- As it is now: the data and the losses go on while the share is written.
  if gathering then
    self.plain = native.plain_text { cursor = plain, rng = random.state(), metadata = options.metadata or {} }
  end
  local copy = native.snapshot(shares.of(list, ranks.rank, ranks.world))
  if self.apart then
    if not ranks.training then native.share_clear(options.directory) end
    ranks.training = ranks.training or name    -- random, the same at all ranks
    self.write = native.share_apart(copy, options, ranks.rank, ranks.world)
  else
    self.write = native.share_write(copy, options.directory, name, ranks.rank, ranks.world)
  end
  return self
end

-- Whether this rank's share is still being written. Raises the error if it could not be.
function Share:writing() return native.checkpoint_poll(self.write) == nil end

function Share:wait() native.checkpoint_wait(self.write) end

-- Called on every rank when all have written their shares. Returns a handle for checkpoint.done and checkpoint.wait on
-- rank 0; and what the runner must know to put the shares together, where they are apart.
function Share:publish()
  local ranks, options, place, lists = self.ranks, self.options, nil, nil
  if self.apart then
    local done = native.checkpoint_poll(self.write)
    place = { training = ranks.training, rank = ranks.rank, world = ranks.world, directory = done.directory }
    lists = ranks:collect(done.list)
  end
  if ranks.rank > 0 then return nil, place end
  local plan = native.plain_value(self.plain)
  plan.directory, plan.step = options.directory, options.step
  plan.keep, plan.keep_every = options.keep, options.keep_every
  if place then return native.share_join(place.directory, lists, plan), place end
  return native.share_publish(self.gathering, ranks.world, plan)
end

return shares
