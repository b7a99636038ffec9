-- rille.checkpoint: saves and restores the state of a training. `state` is a list or table of models, optimizers, data
-- sets, or any objects with state() and load_state() that use plain data. Files are safetensors with a manifest, see
-- the manual.
local native = require "rille.native"
local rille = require "rille"
local places = require "rille.tools.places"
local random = require "rille.tools.random"

local checkpoint = {}

---Copies the present state and starts to write it; returns a handle for checkpoint.done and checkpoint.wait. Earlier
---checkpoints stay untouched until the new one is complete.
---@param state table models, optimizers and data sets: a list, or a table with names
---@param options { directory: string, step: integer, keep: integer, keep_every: integer, metadata: table } see above
---@return userdata
---@mark ephemeral
---@async
---@error denied without a grant to write the directory
function checkpoint.begin(state, options)
  native.check_options(options, "rille.checkpoint", { "directory", "step", "keep", "keep_every", "metadata" })
  local list, plain = places.tensors_of(state)
  local stands = random.state()
  local copy = native.snapshot(list)
  return native.checkpoint_write(copy, { directory = options.directory, step = options.step, keep = options.keep,
    keep_every = options.keep_every, cursor = plain, rng = stands, metadata = options.metadata or {} })
end

---The written checkpoint, { step, directory, size_bytes }, or nil while it is being written; raises the error if
---writing failed.
---@param write userdata the handle from begin
---@return table?
---@mark ephemeral
function checkpoint.done(write) return native.checkpoint_poll(write) end

---Waits until the checkpoint is written.
---@param write userdata the handle from begin
---@return table
---@mark ephemeral
---@async
function checkpoint.wait(write) return native.checkpoint_wait(write) end

---Writes the state and waits.
---@param state table models, optimizers and data sets: a list, or a table with names
---@param options table  as for checkpoint.begin
---@return table
---@mark ephemeral
---@async
---@error denied without a grant to write the directory
function checkpoint.save(state, options)
  local done = checkpoint.wait(checkpoint.begin(state, options))
  native.emit { event = "checkpoint", step = done.step, directory = done.directory, size_bytes = done.size_bytes,
    keep = options.keep, keep_every = options.keep_every }
  return done
end

---Whether the directory contains a checkpoint. A damaged one counts too, so that a training does not silently start
---over where `load` would report the damage.
---@param directory string where the checkpoints are
---@return boolean
---@mark ephemeral
---@error denied without a grant to read the directory
function checkpoint.exists(directory) return native.checkpoint_any(directory) end

---Restores the state from the newest complete checkpoint with correct digests, or from the checkpoint of `step`.
---Tensors go to the devices on which the state holds them now, and the random numbers of all devices in use continue. A
---newer damaged checkpoint is skipped, and a line says why.
---@param state table models, optimizers and data sets: a list, or a table with names
---@param directory string where the checkpoints are
---@param step? integer one checkpoint; the newest by default
---@return { step: integer, directory: string, metadata: table }
---@mark ephemeral
---@async
---@error integrity all checkpoints are damaged; the cause names the fault of the newest
---@error state there is no checkpoint
---@error denied without a grant to read the directory
function checkpoint.load(state, directory, step)
  local stored = native.checkpoint_open(directory, step)
  for _, fault in ipairs(stored.skipped) do
    print(("checkpoint skipped: %s; going back to step %d"):format(fault, stored.step))
  end
  for _, place in ipairs(places.of(state)) do
    if place.kind == "data" then
      local saved = stored.cursor[place.name]
      if saved == nil then
        rille.error { kind = "state",
          message = ("the checkpoint %s has no data for '%s'"):format(stored.directory, place.name) }
      end
      place.item:load_state(saved)
    else
      place.item:load_state(native.checkpoint_tensors(stored.files, place.name))
    end
  end
  random.restore(stored.rng)
  return { step = stored.step, directory = stored.directory, metadata = stored.metadata }
end

return checkpoint
