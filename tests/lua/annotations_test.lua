-- run: durable
-- What stdlib documents and what there is are the same words: the table `rille`, its modules, and each class of
-- objects with methods and fields. A method without an entry fails, and so does an entry that names none.
local rille = require "rille"
local tap = require "tap"
local luacats = require "rille.tools.luacats"

local function module(name, file)
  return rille.step("read " .. name, function()
    local source = assert(io.open(os.getenv("RILLE_TEST_FOLDER") .. "/../../stdlib/" .. file)):read("*a")
    return { name = name, file = file, source = source }
  end)
end

local modules = { module("rille.meta.rille", "meta/rille.lua") }
local described = { "rille_step", "rille_fiber", "rille_wait", "rille_say", "rille_store",
  "instance", "store", "volume", "device", "kernel", "stream", "event", "buffer", "optimizer", "communicator", "tensor",
  "tensor_elementwise", "tensor_reduce", "tensor_network", "tensor_shape", "tensor_index",
  "tensor_image" }
for _, name in ipairs(described) do
  modules[#modules + 1] = module("rille.meta." .. name, "meta/" .. name .. ".lua")
end
local plain = { "nn", "optim", "data", "checkpoint" }
local folders = { nn = true, optim = true }
for _, name in ipairs(plain) do
  modules[#modules + 1] = module("rille." .. name, name .. (folders[name] and "/init.lua" or ".lua"))
end
modules[#modules + 1] = module("rille.optim.schedules", "optim/schedules.lua")
modules[#modules + 1] = module("rille.optim.ema", "optim/ema.lua")
for _, name in ipairs { "attention", "gpt", "gpt2", "llama", "bert", "resnet" } do  -- each returns its function
  modules[#modules + 1] = module("rille.nn." .. name, "nn/" .. name .. ".lua")
end
local index = luacats.index(modules)

-- The names after `prefix` of documented functions, and of a class's fields.
local function documented(prefix, class)
  local names = {}
  for known, entry in pairs(index.entries) do
    local rest = known:sub(1, #prefix) == prefix and known:sub(#prefix + 1) or ""
    if entry.kind == "function" and rest:find("^[%w_]+$") then names[rest] = true end
  end
  local entry = class and index.entries[class]
  for _, field in ipairs(entry and entry.fields or {}) do names[field.name] = true end
  return names
end

local function same(what, real, written)
  local any = false
  for name in pairs(real) do
    any = true
    tap.ok(written[name], what .. name .. " has no entry in stdlib")
  end
  for name in pairs(written) do tap.ok(real[name], "stdlib documents " .. what .. name .. ", which does not exist") end
  tap.ok(any, what .. " is empty")
end

local function functions_of(t)
  local names = {}
  for key, value in pairs(t) do
    if type(value) == "function" and key:sub(1, 1) ~= "_" then names[key] = true end
  end
  return names
end

-- An object tells all its names when it is asked for one that it does not have.
local function names_of(object)
  local err = tap.raises("invalid", "no field or method '?'", function() return object["?"] end)
  local list = tostring(err.hint):match("^it has: (.*)$")
  tap.ok(list, "the hint does not list the names: " .. tostring(err.hint))
  local names = {}
  for name in list:gmatch("[%w_]+") do names[name] = true end
  return names
end

local function public(names)
  local out = {}
  for name in pairs(names) do if name:sub(1, 1) ~= "_" then out[name] = true end end
  return out
end

tap.test("every function of rille is documented, and none that is not there", function()
  local written, there = documented("rille."), {}
  for name in pairs(written) do
    local ok, value = pcall(function() return rille[name] end)
    if ok and value ~= nil then there[name] = true end
  end
  for name in pairs(functions_of(rille)) do there[name] = true end
  same("rille.", there, written)
end)

for _, name in ipairs(plain) do
  tap.test("rille." .. name, function()
    same("rille." .. name .. ".", functions_of(require("rille." .. name)), documented("rille." .. name .. "."))
  end)
end

tap.test("Instance", function()
  local box = rille.rent("box", { provider = "local" })
  same("Instance:", names_of(box), documented("Instance:", "Instance"))
end)

tap.test("Store", function()
  same("Store:", names_of(rille.store "s3://bucket/prefix"), documented("Store:", "Store"))
end)

tap.test("Volume", function()
  local volume = rille.volume("scratch", { size = "1GB", provider = "local", keep = false })
  same("Volume:", names_of(volume), documented("Volume:", "Volume"))
end)

tap.test("Device, Tensor, Optimizer", function()
  local device = rille.device("cpu")
  local tensor = device:zeros { 2 }
  same("Device:", public(names_of(device)), documented("Device:", "Device"))
  same("Tensor:", public(names_of(tensor)), documented("Tensor:", "Tensor"))
  tensor:requires_grad_()
  same("Stream:", names_of(device:stream()), documented("Stream:", "Stream"))
  same("Event:", names_of(device:record()), documented("Event:", "Event"))
  same("Kernel:", names_of(device:kernel "__global__ void k() {}"), documented("Kernel:", "Kernel"))
  same("Optimizer:", names_of(rille.optim.sgd({ tensor }, {})), documented("Optimizer:", "Optimizer"))
end)

tap.test("Communicator", function()
  local comm = rille.communicator { rank = 0, world = 1, device = "cpu" }
  same("Communicator:", names_of(comm), documented("Communicator:", "Communicator"))
end)

tap.test("data sets", function()
  local arrays = rille.data.arrays { rille.device("cpu"):zeros { 3 } }
  local written = documented("Arrays:", "Arrays")
  same("Arrays:", names_of(arrays), written)
end)

tap.test("averages", function()
  local ema = rille.optim.ema({ rille.device("cpu"):zeros { 2 } })
  same("Ema:", names_of(ema), documented("Ema:", "Ema"))
end)

tap.test("Fiber", function()
  local fiber = rille.spawn("child", function() end)
  same("Fiber:", names_of(fiber), documented("Fiber:", "Fiber"))
  fiber:wait()
end)

tap.test("a planted method would be found", function()
  tap.raises(nil, "Instance:fly has no entry", same, "Instance:", { fly = true }, {})
  tap.raises(nil, "stdlib documents Instance:swim, which", same, "Instance:", {}, { swim = true })
end)

tap.done()
