---@meta kernel
--- A kernel: CUDA C++ of a script, compiled for a device by `dev:kernel()`. The manual's page on kernels lists the
--- parts of CUDA that the CPU supports.

---@class Kernel
---@field name string "saxpy", "scale<float, 4>"
---@field signature string its name and parameters, with their types
---@field cached boolean it was loaded from the cache on disk
---@field checked boolean it was compiled in checked mode
local Kernel = {}

--- Launches the kernel: an operation that runs at its place in the program's order, when something is read. Pointers
--- take contiguous tensors of their type, or nil; `const` ones are read, others read and written. Values take numbers,
--- booleans, lists for float4 and similar types.
---@param shape table { grid =, block =, shared = 0, cooperative = false, stream = }; grid, block: numbers, or lists of
--- up to 3; stream: of `dev:stream()`, else the device's own order
---@param ...? any the kernel's arguments
---@mark ephemeral
---@error invalid an argument of another type, a wrong number of them, a shape no device supports, a stream of another
---device
---@error state a tensor that requires grad would be written; the stream was released
---@example
--- kernel:launch({ grid = 4, block = 256 }, n, 2.0, x, y)
function Kernel:launch(shape, ...) end

--- The kernel as a function with a fixed shape, for loops: a call creates no Lua object.
---@param shape table as for launch
---@return function go takes the kernel's arguments
---@mark ephemeral
---@example
--- local go = kernel:bind { grid = 4, block = 256 }
--- for _ = 1, 100 do go(n, 0.5, x, y) end
function Kernel:bind(shape) end

--- A good number of threads per block for this kernel: on a GPU the one with the highest occupancy, computed by the
--- driver from its registers and shared memory. On the CPU always 256.
---@return number block threads
---@mark ephemeral
function Kernel:suggest_block() end

--- Compiles the same kernel for a GPU, by NVRTC of the CUDA toolkit. Needs no GPU; cached on disk as well.
---@param arch string "sm_80", "sm_90a", "sm_120"
---@return table cubin { image = bytes, name = "the kernel's name in it", cached = boolean }
---@mark ephemeral
---@async
---@error invalid it does not compile for a GPU (code "kernel_compile"), or there is no such architecture
---@error device there is no NVRTC
---@error denied without the grant `kernels`
function Kernel:cubin(arch) end

--- The kernel in PTX, NVIDIA's assembly language for virtual machines, by NVRTC. Needs no GPU; not cached.
---@param arch? string "sm_80", "sm_90a", "sm_120"; default: the kernel's GPU, or "sm_90" if it is compiled for the CPU
---@return string text
---@mark ephemeral
---@async
---@error invalid it does not compile for a GPU (code "kernel_compile"), or there is no such architecture
---@error device there is no NVRTC
---@error denied without the grant `kernels`
---@example
--- for line in kernel:ptx("sm_90"):gmatch("[^\n]*fma[^\n]*") do print(line) end
function Kernel:ptx(arch) end

--- The kernel's machine code for a GPU, as `nvdisasm` of the CUDA toolkit lists it. Needs no GPU.
---@param arch? string as for `ptx`
---@return string text
---@mark ephemeral
---@async
---@error invalid it does not compile for a GPU (code "kernel_compile"), or there is no such architecture
---@error device there is no NVRTC, or no nvdisasm
---@error denied without the grant `kernels`
function Kernel:sass(arch) end

return Kernel
