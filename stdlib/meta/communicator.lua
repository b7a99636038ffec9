---@meta communicator
--- A communicator: ranks, each its own process, that exchange and reduce tensors together. `rille.communicator` creates
--- it. Every rank makes the same calls in the same order. A disagreement between ranks, a lost rank and a missing rank
--- are errors at all ranks; they are raised at the next value that is read, and the communicator is unusable after the
--- first error.

---@class Communicator
---@field rank integer this process's rank, from 0
---@field world integer the number of ranks
---@field transport string "shared memory", "tcp", "shared memory and tcp", "nccl", "nothing" (a world of one)
---@field device string the device of its tensors: "cpu", "cuda:0"
local Communicator = {}

--- Replaces every rank's tensor by the reduction over all ranks. In place, as PyTorch's, and with the same bits at
--- every rank: contributions are reduced in the order of the ranks, half types in f32 with one rounding at the end. May
--- be used inside a compiled function.
---@param x Tensor|Tensor[]|Module the tensor; or several, as one message
---@param how? string "sum" by default, "mean" (or "avg"), "max", "min", "prod"
---@return Tensor x the same
---@mark ephemeral
---@error invalid a type that is not supported (f16, bf16, f32, f64, i32 and i64 are); whole numbers have no mean
---@error state the tensor has a gradient history: pass its detach()
---@error network another rank is gone
---@error timeout another rank did not come
---@example
--- local mean_loss = comm:all_reduce(loss:detach(), "mean"):item()
function Communicator:all_reduce(x, how) end

--- Copies the values of one rank to all. In place.
---@param x Tensor|Tensor[]|Module the tensor; or several; for a module all of its state
---@param from? integer the rank, 0 by default
---@return Tensor x the same
---@mark ephemeral
---@error invalid there is no such rank
---@example
--- comm:broadcast(model)  -- all ranks start with the weights of rank 0
function Communicator:broadcast(x, from) end

--- Concatenates the tensors of all ranks along the first dimension, in the order of the ranks.
---@param x Tensor of the same shape at all ranks, [n, ...]
---@return Tensor all [world * n, ...]
---@mark ephemeral
---@error invalid a tensor without dimensions
function Communicator:all_gather(x) end

--- Reduces as `all_reduce`, and returns each rank its part of the first dimension.
---@param x Tensor [world * n, ...]
---@param how? string "sum" by default, "mean" (or "avg"), "max", "min", "prod"
---@return Tensor part [n, ...]
---@mark ephemeral
---@error invalid the first dimension is not divisible by the number of ranks
function Communicator:reduce_scatter(x, how) end

--- Sends a tensor to one rank, which must call `recv` or `sendrecv`. Waits until that rank has begun to receive: if
--- every rank sends before it receives, all of them wait until the time limit; `sendrecv` does both at once.
---@param x Tensor the tensor to send
---@param to integer the rank
---@return Tensor x the same
---@mark ephemeral
---@error invalid there is no such rank, or it is this one
function Communicator:send(x, to) end

--- Receives a tensor from another rank into a tensor of the same shape and type.
---@param x Tensor is overwritten
---@param from integer the rank
---@return Tensor x the same
---@mark ephemeral
---@error invalid there is no such rank, or it is this one
function Communicator:recv(x, from) end

--- Sends a tensor to one rank while it receives another one: in a ring each rank passes its tensor on with one call.
--- For rank `to` the call is a `send`, for rank `from` a `recv`: they may answer with `sendrecv`, or with `recv` and
--- `send`. The two tensors may differ in shape and type; if they share memory, a copy is sent. A rank may send to
--- itself what it also receives from itself. On GPUs both go as one NCCL group.
---@param x Tensor the tensor to send
---@param to integer the rank to send it to
---@param into Tensor is overwritten; of the shape and type of what rank `from` sends
---@param from integer the rank to receive from
---@return Tensor into the same
---@mark ephemeral
---@error invalid there is no such rank; or only one of the two ranks is this one
---@error state `into` has a gradient history: pass its detach()
---@error network another rank is gone
---@error timeout another rank did not come
---@example
--- local next, previous = (comm.rank + 1) % comm.world, (comm.rank - 1) % comm.world
--- comm:sendrecv(mine, next, theirs, previous)
function Communicator:sendrecv(x, to, into, from) end

--- Averages the gradients over the ranks: call it between `backward` and `opt:step()`, also inside a compiled function.
--- With gradient accumulation only the last part exchanges gradients. All gradients are sent as one message.
---@param parameters Optimizer|Module|Tensor[] the parameters whose gradients are averaged
---@mark ephemeral
---@example
--- loss:backward()
--- comm:average_gradients(opt)
--- opt:step()
function Communicator:average_gradients(parameters) end

--- Splits the ranks into groups: ranks with the same color get a communicator of their own, ordered by key (by rank
--- where keys are equal), as MPI_Comm_split does. All ranks make the call; a rank without a color gets nil. Groups work
--- independently of each other and of this communicator, and inherit its time limit, token and transport.
---@param color? integer the group of this rank; nil: none
---@param key? integer its position in the group, its rank by default
---@return Communicator? group
---@mark ephemeral
---@async
---@error invalid color or key is not a whole number
---@error state inside a compiled function
---@error network the first rank of the group cannot be reached
---@error denied without a grant of the host of a group's first rank (network)
---@example
--- local half = comm:split(comm.rank % 2)                       -- even and odd ranks
--- local some = comm:split(comm.rank < 2 and 1 or nil)          -- ranks 0 and 1; nil at the others
function Communicator:split(color, key) end

--- Waits until all ranks have called it, and until all earlier work has run.
---@mark ephemeral
---@async
---@error state inside a compiled function
function Communicator:barrier() end

--- Waits for active work, and tells the other ranks that this one makes no more calls. The end of a script does the
--- same, but waits at most five seconds for other ranks.
---@mark ephemeral
---@async
---@error state inside a compiled function
function Communicator:close() end

return Communicator
