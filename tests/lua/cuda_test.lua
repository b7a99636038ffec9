-- run: ephemeral
-- The stand-in driver (tests/support/standin) plays one GPU here; its kernels run on the CPU.
local rille = require "rille"
local tap = require "tap"
local cpu, dev = rille.device("cpu"), rille.device("cuda:0")

tap.test("a CUDA device says what it is", function()
  local list = rille.devices()
  tap.equal(#list, 2)
  tap.ok(list[1] == dev and list[2] == cpu and rille.device("cuda") == dev)
  tap.ok(rille.device() == dev, "it is the device where nothing else is said")
  tap.equal({ dev.name, dev.kind, dev.model, dev.architecture, dev.multiprocessors, dev.threads },
    { "cuda:0", "cuda", "Stand-in GPU", "sm_90", 2, 0 })
  tap.equal(dev.memory_bytes, 2 ^ 30)
  tap.ok(rille.device("cuda:" .. dev.uuid) == dev)
  tap.equal(cpu.model, nil)
  tap.ok(tostring(dev):find("^Device cuda:0: Stand%-in GPU, sm_90, 2 multiprocessors"))
  tap.raises("device", "no device 'cuda:3'", rille.device, "cuda:3")
  tap.raises("invalid", "no device 'tpu'", rille.device, "tpu")
end)

tap.test("tensors are made, computed and read there", function()
  local a = dev:tensor { { 1, 2 }, { 3, 4 } }
  tap.equal((a * 2 + a:transpose(1, 2)):totable(), { { 3, 7 }, { 8, 12 } })
  tap.equal(tostring(a), "Tensor f32[2, 2] cuda:0")
  tap.ok(dev:memory().live > 0 and dev:memory().card_total == 2 ^ 30)
  tap.equal(cpu:memory().card_total, nil)
end)

tap.test("tensors move between devices", function()
  local here = cpu:tensor({ 1, 2, 3 }, { requires_grad = true })
  local there = here:to(dev)
  tap.equal((there + there):detach():to("cpu"):totable(), { 2, 4, 6 })
  tap.ok(there.requires_grad and not here:to(cpu).grad)
  tap.equal(here:detach():to("cuda:0"):to("f64"):to(cpu).dtype, "f64")
  tap.raises("invalid", "cpu and cuda:0", function() return here + there end)
  tap.raises("state", "history", function() return (there * 2):to(cpu) end)
end)

tap.test("a compiled function runs where its tensors are", function()
  local twice = rille.compile(function(x) return x * 2 + 1 end)
  for i = 1, 5 do
    tap.equal(twice(dev:tensor { i }):totable(), { 2 * i + 1 })
  end
  tap.equal(twice(cpu:tensor { 4 }):totable(), { 9 })
end)

tap.test("a profile is the device's own", function()
  local x = dev:ones { 64 }
  local p = dev:profile(function() return (x + x):totable() end)
  tap.equal(p.rows[1].name, "add")
end)

tap.test("what the device cannot do is refused where it stands", function()
  tap.raises("device", "fourier cannot run on cuda:0", function() return dev:ones { 8 }:rfft() end)
end)

tap.done()
