---@meta optimizer
--- An optimizer, as `rille.optim.adamw` and `rille.optim.sgd` give it. Its state is made with it and lives on the
--- device.

---@class Optimizer
local Optimizer = {}

--- Updates every parameter that has a `.grad`, then clears the gradients.
---@mark ephemeral
function Optimizer:step() end

--- Clears the gradients.
---@mark ephemeral
function Optimizer:zero_grad() end

--- Sets the learning rate; compiled steps see it.
---@param lr number the rate
---@param group? number one group, from 1; all by default
---@mark ephemeral
function Optimizer:set_lr(lr, group) end

--- Its state, for checkpoints: names and tensors.
---@return table state list of { name =, tensor = }
---@mark ephemeral
function Optimizer:state() end

--- Puts its state back, by name.
---@param state table what state() gave, or tensors by name
---@mark ephemeral
---@error state a name is missing: it belongs to another model
function Optimizer:load_state(state) end

return Optimizer
