-- Internal: dev:elementwise and dev:reduction. Documented in meta/device.lua.
local native = require "rille.native"
local rille = require "rille"

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

local c_types = { f32 = "float", f64 = "double", i32 = "int", i64 = "long long", u8 = "unsigned char",
  i8 = "signed char", bool = "bool" }
-- Names that C++ has itself.
local reserved = {}
for word in ("auto bool break case char const continue default do double else enum float for if int long return short "
  .. "signed sizeof static struct switch unsigned void while true false INFINITY NAN M_PI threadIdx blockIdx blockDim "
  .. "gridDim float2 float4"):gmatch("%S+") do
  reserved[word] = true
end
local threads = 256

-- "z = x * y + 1; w = x" -> { "z", "w" }, { "x", "y" }: what is set, and what else is named.
local function names_in(verb, text)
  local outputs, inputs, seen = {}, {}, {}
  for name, rest in text:gmatch("([%a_][%w_]*)%s*()=") do
    local before = text:sub(1, rest - 1):match("^(.-)[%a_][%w_]*%s*$")
    local starts = before:match("^%s*$") or before:match(";%s*$")
    if starts and text:sub(rest + 1, rest + 1) ~= "=" and not seen[name] then
      outputs[#outputs + 1], seen[name] = name, "output"
    end
  end
  if #outputs == 0 then
    invalid(("%s: '%s' sets nothing"):format(verb, text), verb .. '("z = x * y + 1")')
  end
  for before, name, after in text:gmatch("()([%a_][%w_]*)%s*()") do
    local previous, following = text:sub(before - 1, before - 1), text:sub(after, after)
    local number = previous:match("[%w%.]") and text:sub(1, before - 1):match("[%d%.][%w%.]*$")
    if not seen[name] and not reserved[name] and following ~= "(" and not number then
      inputs[#inputs + 1], seen[name] = name, "input"
    end
  end
  return outputs, inputs
end

-- The shape to which all tensors broadcast.
local function common_shape(verb, tensors)
  local shape = {}
  for name, tensor in pairs(tensors) do
    local own = tensor:shape()
    for i = 1, #own do
      local at = #own - i + 1
      local have, want = shape[i] or 1, own[at]
      if have ~= 1 and want ~= 1 and have ~= want then
        invalid(("%s: %s is [%s], which does not fit the other tensors"):format(verb, name, table.concat(own, ", ")))
      end
      shape[i] = math.max(have, want)
      if have == 0 or want == 0 then shape[i] = 0 end
    end
  end
  local out = {}
  for i = #shape, 1, -1 do out[#out + 1] = shape[i] end
  return out
end

-- The kernel for arguments of these types: numbers are doubles.
local function source_of(expression, outputs, inputs, types, dtype)
  local parameters, reads, writes = { "long long n" }, {}, {}
  for i, name in ipairs(inputs) do
    if types[i] == "number" then
      parameters[#parameters + 1] = ("%s %s"):format(dtype == "f32" and "float" or "double", name)
    else
      parameters[#parameters + 1] = ("const %s* %s_"):format(c_types[types[i]], name)
      reads[#reads + 1] = ("    const %s %s = %s_[i];"):format(c_types[types[i]], name, name)
    end
  end
  for _, name in ipairs(outputs) do
    parameters[#parameters + 1] = ("%s* %s_"):format(c_types[dtype], name)
    reads[#reads + 1] = ("    %s %s;"):format(c_types[dtype], name)
    writes[#writes + 1] = ("    %s_[i] = %s;"):format(name, name)
  end
  return table.concat({
    ('extern "C" __global__ void elementwise(%s) {'):format(table.concat(parameters, ", ")),
    "  const long long step = (long long)gridDim.x * blockDim.x;",
    "  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {",
    table.concat(reads, "\n"), "    " .. expression .. ";", table.concat(writes, "\n"), "  }", "}", "" }, "\n")
end

local order = { bool = 1, u8 = 2, i8 = 3, i32 = 4, i64 = 5, f32 = 6, f64 = 7 }

-- The arguments of a call in the order of the names: given in that order, or by name in one table.
local function arguments_of(verb, inputs, ...)
  local given = { ... }
  if select("#", ...) == 1 and type(given[1]) == "table" and getmetatable(given[1]) == nil then
    local by_name = given[1]
    given = {}
    for i, name in ipairs(inputs) do given[i] = by_name[name] end
  end
  local tensors, types, dtype = {}, {}, nil
  for i, name in ipairs(inputs) do
    local value = given[i]
    if type(value) == "number" then types[i] = "number"
    elseif native.kind(value) ~= nil then
      if not c_types[value.dtype] then
        invalid(("%s: %s is %s; cast it with %s:to('f32')"):format(verb, name, value.dtype, name))
      end
      tensors[name], types[i] = value, value.dtype
      if not dtype or order[value.dtype] > order[dtype] then dtype = value.dtype end
    else
      invalid(("%s: %s is %s; a tensor or a number is needed"):format(verb, name, tostring(value)),
        ("the arguments are %s"):format(table.concat(inputs, ", ")))
    end
  end
  if not dtype then invalid(verb .. ": no argument is a tensor") end
  return given, tensors, types, dtype
end

-- Refuses what CuPy's classes take in this place.
local function check_table(verb, options, example)
  if options == nil or type(options) == "table" then return end
  invalid(("%s: expected a table of options, got %s"):format(verb, tostring(options)), example)
end

local function elementwise(dev, expression, options)
  local verb = "dev:elementwise"
  check_table(verb, options, verb .. '("z = x * y + 1"): the expression alone; types are those of the tensors')
  options = options or {}
  native.check_options(options, verb, { "dtype", "name" })
  if type(expression) ~= "string" then
    invalid(("%s: expected an expression, got %s"):format(verb, tostring(expression)), verb .. '("z = x * y + 1")')
  end
  if options.dtype and not c_types[options.dtype] then
    invalid(("%s: dtype = %s; one of bool u8 i8 i32 i64 f32 f64 is needed"):format(verb, tostring(options.dtype)))
  end
  local outputs, inputs = names_in(verb, expression)
  local kernels = {}
  return function(...)
    local given, tensors, types, dtype = arguments_of(verb, inputs, ...)
    dtype = options.dtype or dtype
    local shape = common_shape(verb, tensors)
    local key = table.concat(types, ",") .. ">" .. dtype
    kernels[key] = kernels[key] or dev:kernel(source_of(expression, outputs, inputs, types, dtype))
    local arguments, n = {}, 1
    for _, size in ipairs(shape) do n = n * size end
    for i in ipairs(inputs) do
      local value = given[i]
      if native.kind(value) ~= nil then value = value:detach():expand(shape):contiguous() end
      arguments[i] = value
    end
    local results = {}
    for i in ipairs(outputs) do
      local spec = { dtype = dtype }
      for at, size in ipairs(shape) do spec[at] = size end
      results[i] = dev:zeros(spec)
      arguments[#inputs + i] = results[i]
    end
    if n > 0 then
      local blocks = math.min(math.ceil(n / threads), 65535)
      kernels[key]:launch({ grid = blocks, block = threads }, n, unpack(arguments, 1, #inputs + #outputs))
    end
    return unpack(results)
  end
end

local folds = { sum = true, mean = true, max = true, min = true, prod = true }

local function reduction(dev, expression, options)
  local verb = "dev:reduction"
  check_table(verb, options, verb .. '("x * y", { by = "max" })')
  options = options or {}
  native.check_options(options, verb, { "by", "dims", "keepdim", "dtype" })
  local by = options.by or "sum"
  if not folds[by] then
    invalid(("%s: by = %s; one of sum, mean, max, min, prod is needed"):format(verb, tostring(by)))
  end
  if type(expression) ~= "string" or expression:find("[^=<>!]=[^=]") then
    invalid(("%s: '%s' is no expression without `=`"):format(verb, tostring(expression)), verb .. '("x * y")')
  end
  local each = elementwise(dev, "rille_each = " .. expression, { dtype = options.dtype })
  return function(...)
    local values = each(...)
    if options.dims == nil then return values[by](values) end
    return values[by](values, options.dims, options.keepdim)
  end
end

return { elementwise = elementwise, reduction = reduction }
