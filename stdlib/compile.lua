-- rille.compile: a function of tensors, recorded once and replayed.
local native = require "rille.native"

local function done(handle, fn, ...)
  native.compiled_warning(handle, fn)
  return ...
end

local function finish(handle, fn, ok, ...)
  if not ok then
    native.compiled_abandon(handle)
    error((...), 0)
  end
  return done(handle, fn, native.compiled_finish(handle, ...))
end

local Compiled = {}
Compiled.__index = Compiled

local function run(handle, fn, traced, ...)
  if not traced then return ... end
  return finish(handle, fn, xpcall(fn, native.trace, ...))
end

---Compiles a function of tensors: records it once and then replays it as a flat list of kernel calls.
---
---Call 1 runs normally; call 2 is traced: it must use the same operations, and reading a value or waiting in it raises
---an error that names the line. From call 3 on the function itself does not run. Shapes, types, plain arguments
---(numbers, strings, booleans) and a model's train/eval mode are part of the key: another combination is recorded anew.
---So are the values that the function reads from upvalues (also of the functions in them) and globals: plain values by
---value, tensors, tables and functions by identity. Variables that it assigns and fields of tables are not part of it.
---`explain()` gives the cause of each recording; at the eighth avoidable one the run gets a warning with its cause.
---It takes tensors and plain values and returns tensors; models and optimizers are upvalues.
---Results of calls 1, 2 and 3 are bit-equal; only random numbers differ from those of the plain function, as each
---call has a step of its own in the device's sequence. A value that changes from call to call (a learning rate) should
---be a tensor on the device, as an optimizer's is: each new number is a recording. A number in a field of a table keeps
---the value that it had at call 2.
---@param fn fun(...): Tensor? the function
---
---With `accumulate = n`, n calls form one batch: `backward` adds a call's share, so that the gradients sum up to those
---of the mean loss; clipping, the optimizer's step and its averages happen in the n-th call only. The function stays
---the same: `loss:backward(); opt:step()`. `rille.train` takes n batches per step. All recordings of a function share
---one arena.
---@param options? { check: boolean, recompute: string, epilogues: boolean, accumulate: integer } check: trace every
---call and compare; recompute: what to compute again for the gradients instead of keeping it, to save memory: "none",
---"elementwise" (activations), "norms" (also norms); epilogues: on a GPU a linear layer and the following gelu or relu
---become one call of cuBLASLt, whose results differ in the last bits; accumulate: calls for one update (1)
---@return Compiled called as fn; `:explain()` shows what is replayed
---@mark ephemeral
---@async
local function compile(fn, options)
  if type(fn) ~= "function" then
    require("rille").error { kind = "invalid", message = "rille.compile: expected a function, got " .. type(fn) }
  end
  native.check_options(options, "rille.compile", { "check", "recompute", "epilogues", "accumulate" })
  options = options or {}
  local parts = options.accumulate or 1
  if type(parts) ~= "number" or parts < 1 or parts > 65536 or parts % 1 ~= 0 then
    require("rille").error { kind = "invalid", message = "rille.compile: accumulate = " .. tostring(parts) ..
      "; a whole number from 1 on is needed", hint = "how many batches make one update" }
  end
  local handle = native.compiled(options.check or false, options.recompute, options.epilogues or false, parts)
  local reads = { ids = setmetatable({}, { __mode = "k" }), count = 0 }
  return setmetatable({ handle = handle, fn = fn, reads = reads, accumulate = parts }, Compiled)
end

Compiled.__call = function(self, ...)
  return run(self.handle, self.fn, native.compiled_begin(self.handle, self.fn, self.reads, ...))
end

local function memory(bytes) return require("rille.device.profile").amount(bytes, "B") end

Compiled.__tostring = function(self)
  local i = native.compiled_info(self.handle)
  if i.calls == 0 then return "Compiled: not recorded yet (it is at the second call)" end
  return ("Compiled: %d operations, arena %s"):format(i.calls, memory(i.arena_bytes))
end

local function recordings(plan)
  if plan.retraced == 0 then return "" end
  local lines = { ("%d recordings kept, %d made beyond the first, %d dropped"):format(plan.variants, plan.retraced,
    plan.dropped) }
  for _, r in ipairs(plan.retraces) do lines[#lines + 1] = ("  call %d: %s"):format(r.call, r.cause) end
  return "\n" .. table.concat(lines, "\n")
end

---What the latest recording replays, as a table and as text: the operations with their shapes, bytes and FLOPs, how
---many requested operations were removed, and the memory of temporaries; also the number of recordings, and why the
---function was recorded anew. Nil before the second call, unless that one was recorded anew.
---@return table? plan { recorded, calls, arena_bytes, temporary_bytes, bytes, flops, operations = { { name, shape,
---calls, bytes, flops } }, one_by_one, fallbacks, variants, retraced, retraces = { { call, cause } }, dropped };
---one_by_one is why joined operations run one by one on this GPU, or why its calls are not captured as one, or nil;
---fallbacks as in `dev:profile`; variants are the recordings kept, retraced counts recordings beyond the first,
---retraces has the last 32 of them, dropped counts recordings evicted for others; `tostring(plan)` is the table as text
---@mark ephemeral
function Compiled:explain()
  local plan = native.compiled_info(self.handle)
  if plan.calls == 0 and plan.retraced == 0 then return nil end
  plan.bytes, plan.flops = 0, 0
  for _, row in ipairs(plan.operations) do
    plan.bytes, plan.flops = plan.bytes + row.bytes, plan.flops + row.flops
  end
  return setmetatable(plan, { __tostring = function()
    if plan.calls == 0 then return "nothing is replayed yet" .. recordings(plan) end
    local costs = require "rille.device.profile"
    local text = ("%d operations (%d asked for), %s, %s; arena %s, unshared %s\n%s"):format(plan.calls,
      plan.recorded, memory(plan.bytes), costs.amount(plan.flops, "FLOP"), memory(plan.arena_bytes),
      memory(plan.temporary_bytes), costs.table_of(plan.operations, 30))
    if plan.one_by_one then
      local captured = not plan.one_by_one:find "^not captured"
      text = text .. (captured and "\njoined operations run one by one: " or "\n") .. plan.one_by_one
    end
    return text .. costs.fallbacks_of(plan.fallbacks) .. recordings(plan)
  end })
end

return compile
