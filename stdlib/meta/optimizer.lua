---@meta optimizer
--- An optimizer, from `rille.optim.adamw` and similar functions. Its state is created with it and is on the device.

---@class Optimizer
local Optimizer = {}

--- Updates every parameter that has a `.grad`, then clears the gradients.
---@mark ephemeral
---@error state no parameter has a gradient: call backward() first
function Optimizer:step() end

--- Clears the gradients.
---@mark ephemeral
function Optimizer:zero_grad() end

--- The loss times the loss scale, for an optimizer made with `loss_scale`: small gradients vanish in f16. `opt:step()`
--- divides them by it again; if a gradient is not finite, it changes only the scale, which shrinks; after a row of good
--- steps the scale grows. All of this happens on the device, also in compiled functions.
---@param loss Tensor what backward() starts from, 0-d
---@return Tensor
---@mark ephemeral
---@error state the optimizer has no loss scale
---@example
---opt:scaled(loss):backward()
---opt:step()
function Optimizer:scaled(loss) end

--- Divides the gradients by the loss scale now, to inspect or clip them before `step`. No effect without a loss scale.
---@mark ephemeral
---@error state the loss of these gradients was not scaled
function Optimizer:unscale() end

--- Sets the learning rate; compiled steps use it too. Groups made with a rate of their own keep its ratio to the first
--- group's.
---@param lr number the rate
---@param group? number one group, from 1; all by default
---@mark ephemeral
function Optimizer:set_lr(lr, group) end

--- Its state, for checkpoints: names and tensors.
---@return table state list of { name =, tensor = }
---@mark ephemeral
function Optimizer:state() end

--- Restores its state by name, as `model:load_state` does. Adam counts the steps of each parameter, "step.NAME"; in
--- older states a single "step" stands for all of them.
---@param state table from state(), or tensors by name
---@param options? { strict: boolean } as for `model:load_state`
---@return { missing: string[], unexpected: string[] } names
---@mark ephemeral
---@error state a name is missing or left over, or a tensor has another shape or kind of type
function Optimizer:load_state(state, options) end

return Optimizer
