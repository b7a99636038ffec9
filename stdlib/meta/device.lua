---@meta device
--- Where tensors live and run, as `rille.device()` gives it. In a table of numbers and names, the numbers are the
--- shape.

---@class Device
---@field name string "cpu", "cuda:0"
---@field kind string "cpu", "cuda"
---@field description string processor, instruction set, threads; or the card
---@field threads number that compute uses on the CPU
---@field model? string of a CUDA device: "NVIDIA H200"
---@field uuid? string of a CUDA device: "GPU-...", "MIG-..."
---@field bus? string of a CUDA device: where it sits, "0000:1b:00.0"
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

--- {stop}, {start, stop} or {start, stop, step}; the stop is left out.
---@param spec table one to three numbers, `dtype`
---@return Tensor made
---@mark ephemeral
function Device:arange(spec) end

--- Numbers at equal distances; the stop is the last.
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

--- From the bytes of its values, as `t:bytes()` gives them.
---@param bytes string as many as shape and type need
---@param shape? number[] one dimension of all by default
---@param dtype? string "u8" by default
---@return Tensor made
---@mark ephemeral
---@error invalid there are more or fewer bytes
---@example
--- local t = dev:from_bytes("abcdef", { 2, 3 })
--- print(t[2][3]:item())                --> 102
function Device:from_bytes(bytes, shape, dtype) end

--- Restarts the random numbers.
---@param seed number a whole number from 0 on
---@mark ephemeral
function Device:seed(seed) end

--- Where the random numbers stand.
---@return table state
---@mark ephemeral
function Device:random_state() end

--- Puts the random numbers back there.
---@param state table what random_state gave
---@mark ephemeral
function Device:set_random_state(state) end

--- What is allocated, in bytes: live, cached, working (what products and convolutions of a CUDA device work in), peak
--- (of live and working), limit, buffers. summary: what is live by size and by owner (the model, its gradients, the
--- optimizer, ..). Of a CUDA device also card_free and card_total, of all processes together.
---@return table memory
---@mark ephemeral
function Device:memory() end

--- What it does now; takes about a millisecond. What the hardware does not tell is left out. A GPU, by NVML: index name
--- uuid bus, gpu_percent memory_percent (of the time in which kernels ran, in which its memory was used),
--- memory_used_bytes memory_total_bytes, power_watts power_limit_watts energy_joules, temperature_celsius
--- memory_temperature_celsius, sm_clock_mhz memory_clock_mhz, slowdowns (a list: "power_cap", "thermal" ..),
--- pcie_tx_bytes_per_second pcie_rx_bytes_per_second, ecc_corrected ecc_uncorrected remapped_rows, xids (critical
--- errors since the reading before), processes (pid name memory_bytes), mig, lost. The CPU: cpu_percent (of all cores,
--- since the reading before) memory_used_bytes memory_total_bytes.
---@return table reading
---@error device there is no NVIDIA driver, or the card is gone
---@mark ephemeral
---@example
--- print(rille.device():telemetry().memory_used_bytes > 0)      --> true
function Device:telemetry() end

--- Refuses allocations beyond a limit.
---@param size number|string bytes or "2GB"; 0: no limit
---@error invalid a number below 0
---@mark ephemeral
function Device:limit_memory(size) end

--- Gives memory that was freed and is kept for the next tensors (`cached` of memory()) back to the system, or to the
--- other programs of a GPU. Waits until nothing works on it. Rille does so by itself before it says that there is none.
---@mark ephemeral
---@example
--- dev:release_cache()
--- print(dev:memory().cached)      --> 0
function Device:release_cache() end

--- Makes `peak` of memory() what is in use now.
---@mark ephemeral
function Device:reset_peak() end

--- Calls `fn` and tells what each operation in it took, by operation and shape: `print` shows a table, the longest
--- first. bytes: of all operands, each read or written once. flops: of products and attention. Results of `fn` follow.
--- On CUDA the device's own records are taken (CUPTI) while work goes on, and `kernels` lists kernels and copies with
--- name, operations, calls, ms, and bytes and flops where a kernel is all of its operation. Without CUPTI each
--- operation is timed by events (`timed_by` is "events", `why` says why), which waits for each. `fallbacks` lists where
--- a library of NVIDIA's declined an operation, or is not there, and Rille's own kernel ran, and where attention in a
--- half type left the kernels for tensor cores: library, operation, why (the first time) and calls, of all that this
--- process has given to the device; a replay's calls are not counted.
---@param fn function what is timed; read a value in it, or what is still to be computed is counted as well
---@return table profile { ms, busy_ms, timed_by, why, kernels, fallbacks, rows = { { name, shape, calls, ms, bytes,
--- flops } } }
---@return any ... what `fn` returned
---@mark ephemeral
---@async
---@example
--- local x = dev:randn { 256, 256 }
--- local p = dev:profile(function() return x:matmul(x):sum():item() end)
--- print(p.rows[1].name)
function Device:profile(fn) end

--- Calls `fn` with the rest of the arguments and looks at what each operation in it gives: the first one that makes a
--- NaN is the error, with what it was given, its line in the script, and where the first infinity came from. Gradients
--- name the operation that they belong to. Compiled functions run as they are, uncompiled, so this is slow. What else
--- is found only when a value is read (a label out of range, memory that ran out) names its operation's line, too.
---@param fn function what is looked at; it may be a compiled function
---@param ... any its arguments
---@return any ... what `fn` returned
---@mark ephemeral
---@async
---@error state an operation made a NaN (code "not_a_number")
---@example
--- local loss = dev:check_numbers(update, x, y)
function Device:check_numbers(fn, ...) end

--- Compiles a kernel from CUDA C++, for this device: on a CUDA device by NVRTC, on the CPU with the system's C++
--- compiler, behind a shim. Results are kept on disk. Only the calling fiber waits.
---@param source string|table CUDA C++; or the options, with `file`
---@param options? table { name =, template =, defines =, constants =, options =, checked = false }
---@return Kernel kernel ready to be launched
---@mark ephemeral
---@async
---@error invalid it does not compile (code "kernel_compile"): the message begins with the script's line
---@error device there is no NVRTC, or no C++ compiler
---@example
--- local kernel = dev:kernel [[
---   __global__ void double_all(int n, float* x) {
---     int i = blockIdx.x * blockDim.x + threadIdx.x;
---     if (i < n) x[i] *= 2;
---   }
--- ]]
function Device:kernel(source, options) end

--- Compiles a kernel from a file.
---@param path string a .cu file, beside the script when it is not absolute
---@param options? table as `kernel` takes them
---@return Kernel kernel ready to be launched
---@mark ephemeral
---@async
---@error io the file cannot be read
function Device:kernel_file(path, options) end

--- Waits until everything asked for has run, on all streams.
---@mark ephemeral
---@async
function Device:synchronize() end

--- A stream: an order of its own, for launches beside the device's other work. The manual's page on kernels says when
--- it helps.
---@return Stream stream new; a few are enough
---@mark ephemeral
---@error device the device is lost
---@error state all 128 streams of a GPU are in use
---@example
--- local stream = dev:stream()
--- kernel:launch({ grid = 4, block = 256, stream = stream }, n, 2.0, x, y)
function Device:stream() end

--- An event behind all that was asked for so far in the device's own order: tensor operations, and launches without a
--- stream. What is pending is given to the device.
---@return Event event recorded
---@mark ephemeral
---@error state inside a compiled function
---@error device the device is lost
---@example
--- local before = dev:record()
function Device:record() end

--- What is asked for from here on in the device's own order comes after the event. The script does not wait.
---@param event Event of this device
---@mark ephemeral
---@error invalid an event of another device
---@error state inside a compiled function
---@example
--- dev:wait(stream:record())
function Device:wait(event) end

return Device
