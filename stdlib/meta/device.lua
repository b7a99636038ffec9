---@meta device
--- Where tensors are stored and computed. `rille.device()` returns it. In a table of numbers and names, the numbers are
--- the shape.

---@class Device
---@field name string "cpu", "cuda:0"
---@field kind string "cpu", "cuda"
---@field description string processor, instruction set, threads; or the GPU
---@field threads number compute threads of the CPU
---@field model? string of a CUDA device: "NVIDIA H200"
---@field uuid? string of a CUDA device: "GPU-...", "MIG-..."
---@field bus? string of a CUDA device: its PCI address, "0000:1b:00.0"
---@field architecture? string of a CUDA device: "sm_90"
---@field multiprocessors? number of a CUDA device
---@field memory_bytes? number of a CUDA device, in all
local Device = {}

--- Zeros.
---@param spec table sizes, and { dtype = "f32", requires_grad = false }
---@return Tensor made
---@mark ephemeral
---@example
--- local t = dev:zeros { 2, 3 }
function Device:zeros(spec) end

--- Ones.
---@param spec table sizes, and { dtype = "f32", requires_grad = false }
---@return Tensor made
---@mark ephemeral
---@example
--- local t = dev:ones { 2, 3 }
function Device:ones(spec) end

--- Random numbers, uniform in [0, 1).
---@param spec table sizes, and { dtype = "f32", requires_grad = false }
---@return Tensor made
---@mark ephemeral
---@example
--- local t = dev:rand { 2, 3 }
function Device:rand(spec) end

--- Random numbers, normal (0, 1).
---@param spec table sizes, and { dtype = "f32", requires_grad = false }
---@return Tensor made
---@mark ephemeral
---@example
--- local t = dev:randn { 2, 3 }
function Device:randn(spec) end

--- One number everywhere.
---@param spec table sizes, `value`, `dtype`, `requires_grad`
---@return Tensor made
---@mark ephemeral
function Device:full(spec) end

--- Whole random numbers from `low` to below `high`.
---@param spec table sizes, `low` (0), `high`, `dtype` ("i64")
---@return Tensor made
---@mark ephemeral
function Device:randint(spec) end

--- The numbers from 0 to n - 1 in a random order.
---@param n number how many
---@return Tensor made [n], i64
---@mark ephemeral
function Device:randperm(n) end

--- {stop}, {start, stop} or {start, stop, step}; the stop is excluded.
---@param spec table one to three numbers, `dtype`
---@return Tensor made
---@mark ephemeral
function Device:arange(spec) end

--- Evenly spaced numbers, including the stop.
---@param spec table start, stop, count, `dtype` ("f32")
---@return Tensor made
---@mark ephemeral
---@example
--- local t = dev:linspace { 0, 1, 5 }
function Device:linspace(spec) end

--- Ones on the diagonal.
---@param spec table rows, or rows and columns, `dtype`, `requires_grad`
---@return Tensor made
---@mark ephemeral
function Device:eye(spec) end

--- The angles of rotary position embedding, for `x:rope(cos, sin)`.
---@param spec table positions, width (of a head), `base` (10000), `dtype` ("f32")
---@return Tensor cos [positions, width / 2]
---@return Tensor sin
---@mark ephemeral
function Device:rope_angles(spec) end

--- From nested lists or a number.
---@param values table|number|boolean the values
---@param options? { dtype: string, requires_grad: boolean } f32; bool for booleans
---@return Tensor made
---@mark ephemeral
---@error invalid lists of one dimension differ in length
function Device:tensor(values, options) end

--- From the bytes of its values, as from `t:bytes()`.
---@param bytes string exactly as many as shape and type need
---@param shape? number[] one dimension by default
---@param dtype? string "u8" by default
---@return Tensor made
---@mark ephemeral
---@error invalid the number of bytes does not match
---@example
--- local t = dev:from_bytes("abcdef", { 2, 3 })
--- print(t[2][3]:item())                --> 102
function Device:from_bytes(bytes, shape, dtype) end

--- Seeds the random numbers.
---@param seed number a whole number from 0 on
---@mark ephemeral
function Device:seed(seed) end

--- The state of the random numbers.
---@return table state
---@mark ephemeral
function Device:random_state() end

--- Restores the state of the random numbers.
---@param state table from random_state
---@mark ephemeral
function Device:set_random_state(state) end

--- Allocated memory in bytes: live, cached, working (workspace of products and convolutions of a CUDA device), peak (of
--- live and working), limit, buffers. summary: live memory by size and by owner (the model, its gradients, the
--- optimizer, ..). For a CUDA device also card_free and card_total, over all processes.
---@return table memory
---@mark ephemeral
function Device:memory() end

--- Its current state; takes about a millisecond. Values that the hardware does not report are left out. A GPU, by NVML:
--- index name uuid bus, gpu_percent memory_percent (of the time in which kernels ran, in which its memory was used),
--- memory_used_bytes memory_total_bytes, power_watts power_limit_watts energy_joules, temperature_celsius
--- memory_temperature_celsius, sm_clock_mhz memory_clock_mhz, slowdowns (a list: "power_cap", "thermal" ..),
--- pcie_tx_bytes_per_second pcie_rx_bytes_per_second, ecc_corrected ecc_uncorrected remapped_rows, xids (critical
--- errors since the last reading), processes (pid name memory_bytes), mig, lost. The CPU: cpu_percent (of all cores,
--- since the last reading) memory_used_bytes memory_total_bytes.
---@return table reading
---@error device there is no NVIDIA driver, or the GPU is gone
---@mark ephemeral
---@example
--- print(rille.device():telemetry().memory_used_bytes > 0)      --> true
function Device:telemetry() end

--- Refuses allocations beyond a limit.
---@param size number|string bytes or "2GB"; 0: no limit
---@error invalid a number below 0
---@mark ephemeral
function Device:limit_memory(size) end

--- Returns cached memory (`cached` of memory()) to the system, or to the other programs of a GPU. Waits until no work
--- uses it. Rille does this itself before it reports that memory is exhausted.
---@mark ephemeral
---@example
--- dev:release_cache()
--- print(dev:memory().cached)      --> 0
function Device:release_cache() end

--- Sets `peak` of memory() to the present use.
---@mark ephemeral
function Device:reset_peak() end

--- Calls `fn` and returns the time of each operation in it, by operation and shape: `print` shows a table, the longest
--- first. bytes: of all operands, each read or written once. flops: of products and attention. The results of `fn`
--- follow. On CUDA the times come from the device's own records (CUPTI), without extra waiting, and `kernels` lists
--- kernels and copies with name, operations, calls, ms, and bytes and flops if a kernel is all of its operation.
--- Without CUPTI each operation is timed by events (`timed_by` is "events", `why` gives the reason), which waits for
--- each operation. `fallbacks` lists operations that a library of NVIDIA's declined or that it was missing for, so that
--- Rille's own kernel ran, and attention in a half type without tensor cores: library, operation, why (the first time)
--- and calls, over all work of this process on the device; calls of a replay are not counted.
---@param fn function what is timed; read a value in it, or pending earlier work is counted as well
---@return table profile { ms, busy_ms, timed_by, why, kernels, fallbacks, rows = { { name, shape, calls, ms, bytes,
--- flops } } }
---@return any ... the results of `fn`
---@mark ephemeral
---@async
---@example
--- local x = dev:randn { 256, 256 }
--- local p = dev:profile(function() return x:matmul(x):sum():item() end)
--- print(p.rows[1].name)
function Device:profile(fn) end

--- Calls `fn` with the remaining arguments and checks the result of each operation in it: the first operation that
--- produces a NaN raises an error with its operands, its line in the script, and the origin of the first infinity.
--- Gradients name the operation that they belong to. Compiled functions run uncompiled, so this is slow. Other errors
--- that are found only when a value is read (a label out of range, exhausted memory) name the operation's line, too.
---@param fn function what is checked; it may be a compiled function
---@param ... any its arguments
---@return any ... the results of `fn`
---@mark ephemeral
---@async
---@error state an operation produced a NaN (code "not_a_number")
---@example
--- local loss = dev:check_numbers(update, x, y)
function Device:check_numbers(fn, ...) end

--- Compiles a kernel from CUDA C++, for this device: on a CUDA device by NVRTC, on the CPU with the system's C++
--- compiler and a shim. Results are cached on disk. Only the calling fiber waits.
---@param source string|table CUDA C++; or the options, with `file`
---@param options? table { name =, template =, defines =, constants =, options =, checked = false }
---@return Kernel kernel ready to be launched
---@mark ephemeral
---@async
---@error invalid it does not compile (code "kernel_compile"): the message begins with the script's line
---@error device there is no NVRTC, or no C++ compiler
---@error denied without the grant `kernels`, or of the file (read); on the CPU also if the run has limits
---@example
--- local kernel = dev:kernel [[
---   __global__ void double_all(int n, float* x) {
---     int i = blockIdx.x * blockDim.x + threadIdx.x;
---     if (i < n) x[i] *= 2;
---   }
--- ]]
function Device:kernel(source, options) end

--- Compiles a kernel from a file.
---@param path string a .cu file, relative to the script
---@param options? table as for `kernel`
---@return Kernel kernel ready to be launched
---@mark ephemeral
---@async
---@error io the file cannot be read
---@error denied without the grant `kernels`, or of the file (read); on the CPU also if the run has limits
function Device:kernel_file(path, options) end

--- Makes a function of tensors from an expression in CUDA C++, which is computed for each of their values.
---
--- What the expression sets (`z` in `"z = x * y + 1"`; several with `;` between) are the results; what else it
--- names are the arguments, in the order in which they stand there: tensors, which are broadcast to one shape, and
--- plain numbers. They may also be given by name in one table. The results have the strongest type among the tensors.
--- The kernel is compiled at the first call with each combination of types. No gradient flows through it: see
--- `rille.custom_grad`.
---@param expression string such as "z = x * y + 1" or "y = x > 0 ? x : slope * x"
---@param options? { dtype: string } the results' type
---@return fun(...: Tensor|number): Tensor ... the results
---@mark ephemeral
---@error invalid it sets nothing; it does not compile (code `kernel_compile`, at the first call); an argument is
---missing, or of half type; shapes that do not fit
---@error denied without the grant `kernels`; on the CPU also if the run has limits
---@example
--- local leaky = dev:elementwise("y = x > 0 ? x : slope * x")
--- print(leaky(dev:tensor { -2, 3 }, 0.1))
function Device:elementwise(expression, options) end

--- Makes a function that computes an expression for each value of its tensors, as `elementwise` does, and folds the
--- values: their sum, mean, greatest, least or product.
---@param expression string without `=`, such as "x * y" or "fabs(x - y)"
---@param options? { by: string, dims: integer|integer[], keepdim: boolean, dtype: string } by: "sum" by default,
---"mean", "max", "min", "prod"; dims: over these, else over all
---@return fun(...: Tensor|number): Tensor result
---@mark ephemeral
---@error invalid as for `elementwise`
---@error denied without the grant `kernels`; on the CPU also if the run has limits
---@example
--- local distance = dev:reduction("(x - y) * (x - y)")
--- print(distance(dev:tensor { 1, 2 }, dev:tensor { 3, 5 }):item())      --> 13
function Device:reduction(expression, options) end

--- Waits until all requested work has run, on all streams.
---@mark ephemeral
---@async
function Device:synchronize() end

--- Creates a stream: a separate order for launches, in parallel with the device's other work. The manual's page on
--- kernels says when it helps.
---@return Stream stream new; a few are enough
---@mark ephemeral
---@error device the device is lost
---@error state all 128 streams of a GPU are in use
---@example
--- local stream = dev:stream()
--- kernel:launch({ grid = 4, block = 256, stream = stream }, n, 2.0, x, y)
function Device:stream() end

--- An event after all work requested so far in the device's own order: tensor operations, and launches without a
--- stream. Pending work is submitted to the device.
---@return Event event recorded
---@mark ephemeral
---@error state inside a compiled function
---@error device the device is lost
---@example
--- local before = dev:record()
function Device:record() end

--- Makes later work in the device's own order wait for the event. The script does not wait.
---@param event Event of this device
---@mark ephemeral
---@error invalid an event of another device
---@error state inside a compiled function
---@example
--- dev:wait(stream:record())
function Device:wait(event) end

return Device
