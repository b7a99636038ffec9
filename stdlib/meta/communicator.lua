---@meta communicator
--- A communicator: ranks, each a process of its own, that exchange and reduce tensors together, as
--- `rille.communicator` gives it. Every rank makes the same calls in the same order. What ranks do not agree in, a rank
--- that is gone and one that does not come are errors at all ranks; they come with the next value that is read, and the
--- communicator is of no use after the first one.

---@class Communicator
---@field rank integer this process's, from 0
---@field world integer how many ranks there are
---@field transport string "shared memory", "tcp", "shared memory and tcp", "nccl", "nothing" (a world of one)
---@field device string whose tensors it takes: "cpu", "cuda:0"
local Communicator = {}

--- Every rank's tensor becomes the reduction of all of them. It happens in place, as PyTorch's does, and has the same
--- bits at every rank: contributions are taken in the order of the ranks, half types in f32 with one rounding at the
--- end. May stand inside a compiled function.
---@param x Tensor|Tensor[]|Module the tensor; or several, as one message
---@param how? string "sum" by default, "mean" (or "avg"), "max", "min", "prod"
---@return Tensor x the same
---@mark ephemeral
---@error invalid a type that is not reduced so: f16, bf16, f32, f64, i32 and i64 are; whole numbers have no mean
---@error state a gradient goes through the tensor: give its detach()
---@error network another rank is gone
---@error timeout another rank did not come
---@example
--- local mean_loss = comm:all_reduce(loss:detach(), "mean"):item()
function Communicator:all_reduce(x, how) end

--- The values of one rank for all. In place.
---@param x Tensor|Tensor[]|Module the tensor; or several; of a module all of its state
---@param from? integer the rank, 0 by default
---@return Tensor x the same
---@mark ephemeral
---@error invalid there is no such rank
---@example
--- comm:broadcast(model)  -- all ranks begin with the weights of rank 0
function Communicator:broadcast(x, from) end

--- The tensors of all ranks behind each other, along the first dimension, in the order of the ranks.
---@param x Tensor of the same shape at all ranks, [n, ...]
---@return Tensor all [world * n, ...]
---@mark ephemeral
---@error invalid a tensor without dimensions
function Communicator:all_gather(x) end

--- Reduces as `all_reduce`, and gives each rank its part of the first dimension.
---@param x Tensor [world * n, ...]
---@param how? string "sum" by default, "mean" (or "avg"), "max", "min", "prod"
---@return Tensor part [n, ...]
---@mark ephemeral
---@error invalid the first dimension cannot be divided by the ranks
function Communicator:reduce_scatter(x, how) end

--- Sends a tensor to one rank, which must be at its `recv`.
---@param x Tensor what to send
---@param to integer the rank
---@return Tensor x the same
---@mark ephemeral
---@error invalid there is no such rank, or it is this one
function Communicator:send(x, to) end

--- Takes what another rank sends into a tensor of the same shape and type.
---@param x Tensor is overwritten
---@param from integer the rank
---@return Tensor x the same
---@mark ephemeral
---@error invalid there is no such rank, or it is this one
function Communicator:recv(x, from) end

--- The gradients become their mean over the ranks: between `backward` and `opt:step()`, also inside a compiled
--- function. With gradient accumulation only those of the last part are exchanged. All gradients go as one message.
---@param parameters Optimizer|Module|Tensor[] whose gradients
---@mark ephemeral
---@example
--- loss:backward()
--- comm:average_gradients(opt)
--- opt:step()
function Communicator:average_gradients(parameters) end

--- Groups of ranks: those that give the same color get a communicator of their own, in the order of their keys (of
--- their ranks, where keys are equal), as MPI_Comm_split has it. All ranks make the call; one without a color gets nil.
--- Groups work beside each other and beside the communicator that they come from, whose time limit, token and transport
--- they keep.
---@param color? integer whose group this rank is in; nil: none
---@param key? integer its place in it, its rank by default
---@return Communicator? group
---@mark ephemeral
---@async
---@error invalid color or key is no whole number
---@error state inside a compiled function
---@error network the first rank of the group cannot be reached
---@example
--- local half = comm:split(comm.rank % 2)                       -- even and odd ranks
--- local some = comm:split(comm.rank < 2 and 1 or nil)          -- ranks 0 and 1; nil at the others
function Communicator:split(color, key) end

--- Waits until all ranks have come here, and until all that was asked for before has run.
---@mark ephemeral
---@async
---@error state inside a compiled function
function Communicator:barrier() end

--- Waits for what is under way, and tells the other ranks that this one makes no more calls. A script that ends does
--- the same, but waits at most five seconds for other ranks.
---@mark ephemeral
---@async
---@error state inside a compiled function
function Communicator:close() end

return Communicator
