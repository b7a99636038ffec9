-- rille.compile: a function of tensors, recorded once and replayed.
local native = require "rille.native"

local function finish(handle, ok, ...)
  if not ok then
    native.compiled_abandon(handle)
    error((...), 0)
  end
  return native.compiled_finish(handle, ...)
end

local function run(handle, fn, traced, ...)
  if not traced then return ... end
  return finish(handle, xpcall(fn, native.trace, ...))
end

---Makes a function of tensors that is recorded once and then replayed as one flat list of kernel calls.
---
---Call 1 runs as it is; call 2 is traced: it must ask for the same operations, and reading a value or waiting in it is
---an error that names the line. From call 3 on the function itself does not run. Shapes, types, plain arguments
---(numbers, strings, booleans) and a model's train/eval mode are part of the key: another combination is recorded anew.
---It takes tensors and plain values, returns tensors; models and optimizers come in as upvalues.
---Results are bit-equal whichever way a call runs. What changes from call to call (a learning rate) must be a tensor on
---the device, as an optimizer's is.
---@param fn fun(...): Tensor? the function
---@param options? { check: boolean } check: trace every call and compare
---@return fun(...): Tensor?
---@mark ephemeral
---@async
local function compile(fn, options)
  if type(fn) ~= "function" then
    require("rille").error { kind = "invalid", message = "rille.compile: expected a function, got " .. type(fn) }
  end
  native.check_options(options, "rille.compile", { "check" })
  local handle = native.compiled(options and options.check or false)
  return function(...) return run(handle, fn, native.compiled_begin(handle, ...)) end
end

return compile
