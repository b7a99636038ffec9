---@meta optimizer
--- An optimizer, as `rille.optim.adamw` and its like give it. Its state is made with it and lives on the device.

---@class Optimizer
local Optimizer = {}

--- Updates every parameter that has a `.grad`, then clears the gradients.
---@mark ephemeral
---@error state none of them has one: backward() comes first
function Optimizer:step() end

--- Clears the gradients.
---@mark ephemeral
function Optimizer:zero_grad() end

--- The loss times the loss scale, for an optimizer made with `loss_scale`: gradients in f16 vanish where they are
--- small. `opt:step()` divides them by it again; where one is not finite it changes nothing but the scale, which
--- shrinks; after a row of good steps it grows. All of that happens on the device, also in compiled functions.
---@param loss Tensor what backward() starts from, 0-d
---@return Tensor
---@mark ephemeral
---@error state the optimizer has no loss scale
---@example
---opt:scaled(loss):backward()
---opt:step()
function Optimizer:scaled(loss) end

--- Divides the gradients by the loss scale now, for who looks at them or clips them before `step`. Does nothing without
--- a loss scale.
---@mark ephemeral
---@error state the loss of these gradients was not scaled
function Optimizer:unscale() end

--- Sets the learning rate; compiled steps see it. Groups made with a rate of their own keep its proportion to the first
--- group's.
---@param lr number the rate
---@param group? number one group, from 1; all by default
---@mark ephemeral
function Optimizer:set_lr(lr, group) end

--- Its state, for checkpoints: names and tensors.
---@return table state list of { name =, tensor = }
---@mark ephemeral
function Optimizer:state() end

--- Puts its state back, by name; as `model:load_state` does. Adam counts the steps of each parameter, "step.NAME"; in a
--- state from before it did, "step" stands for all of them.
---@param state table what state() gave, or tensors by name
---@param options? { strict: boolean } as of `model:load_state`
---@return { missing: string[], unexpected: string[] } names
---@mark ephemeral
---@error state a name is missing or left over, or a tensor has another shape or kind of type
function Optimizer:load_state(state, options) end

return Optimizer
