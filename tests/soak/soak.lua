-- Allocates, frees, compiles, discards, trains, saves and fails for some time, and then has as much memory as after its
-- first quarter (and at least so many rounds): of the process, of the device, and of Lua.
-- usage: rille run soak.lua --seconds 600 [--sizes 3] [--rounds 100] [--seed 1]; fails where something grows. With few
-- sizes the libraries' primitives, of which a thousand are kept, are all made in the first quarter.
local rille = require "rille"

local args = rille.args { seconds = 20, sizes = 4, seed = 1, grows_bytes = 16e6, leak = false, rounds = 100 }

local function round(dev, random, directory, n)
  local function size(most) return math.ceil(random(1, args.sizes) / args.sizes * most) end

  -- Tensors of odd sizes: some freed, some dropped, some never computed.
  local kept = {}
  for i = 1, 30 do
    local t = dev:randn { size(200), size(200) }
    local u = (t * 2 + 1):tanh():matmul(t:transpose(1, 2))
    if i % 3 == 0 then u:sum():item() end
    if i % 5 == 0 then t:free() end
    kept[i % 7] = u
  end

  -- A function for one shape, compiled, called and thrown away; sometimes in the middle of its tracing.
  local f = rille.compile(function(a, b) return (a:matmul(b):softmax(-1) * 3):sum() end)
  local a, b = dev:randn { size(100), 64 }, dev:randn { 64, size(100) }
  for _ = 1, 4 do f(a, b):item() end
  local broken = rille.compile(function(x) return x:sum():item() end)
  for _ = 1, 2 do pcall(broken, a) end

  -- A model, an optimizer and an average, trained and saved.
  local width = 8 * size(8)
  local model = rille.nn.gpt { layers = 1, heads = 2, width = width, context = 16, vocab = 50 + size(50), seed = n }
  local opt = n % 2 == 0 and rille.optim.adamw(model:parameters()) or rille.optim.muon(model:parameters())
  local ema = rille.optim.ema(model)
  local update = rille.compile(function(x)
    local loss = model(x):cross_entropy(x)
    loss:backward()
    opt:step()
    ema:update()
    return loss
  end)
  local x = dev:randint { 2, 16, high = 50 }
  for _ = 1, 4 do update(x) end
  update(x):item()
  if n % 10 == 0 then
    rille.checkpoint.save({ model, opt, ema }, { directory = directory, step = n, keep = 1 })
    rille.checkpoint.load({ model, opt, ema }, directory)
  end

  -- Failures of all kinds let go of what they held.
  pcall(function() return a + b end)
  pcall(function() return dev:tensor({ 7 }, { dtype = "i64" }):embedding(dev:randn { 3, 3 }):sum():item() end)
  pcall(dev.check_numbers, dev, function() return (dev:zeros { 3 } / 0):log():sum() end)
  dev:profile(function() return a:sum():item() end)
end

local function memory(dev)
  dev:synchronize()
  for _ = 1, 3 do collectgarbage() end
  local status = io.open("/proc/self/status"):read("*a")
  local m = dev:memory()
  return { process = tonumber(status:match("VmRSS:%s*(%d+)")) * 1024, device = m.live,
    lua = collectgarbage("count") * 1024 }
end

return rille.step("soak", { args = args }, function()
  local native = require "rille.native"
  local dev = rille.device()
  local directory = os.tmpname()
  os.remove(directory)
  math.randomseed(args.seed)
  dev:seed(args.seed)
  dev:limit_memory("48MB")  -- what is kept for reuse comes and goes with the collector, and would hide what grows
  local began, n, leaked, early, first = native.clock(), 0, {}, nil, nil
  repeat
    n = n + 1
    round(dev, math.random, directory, n)
    if args.leak then leaked[n] = dev:zeros { 100000 } + n leaked[n]:sum():item() end
    local spent = native.clock() - began
    if not early and spent > args.seconds / 4 and n >= args.rounds then early, first = memory(dev), n end
    if n % 100 == 0 then
      rille.progress { what = "soak", done = math.floor(spent), total = args.seconds, unit = "s" }
    end
  until spent > args.seconds and early and n >= 2 * first
  local late = memory(dev)
  os.execute("rm -rf " .. directory)
  for what, before in pairs(early) do
    print(("%-8s %8.2f MB after a quarter, %8.2f MB after %d rounds"):format(what, before / 1e6, late[what] / 1e6, n))
    local allowed = what == "process" and args.grows_bytes or 2e6
    if late[what] > before + allowed then
      rille.error { kind = "memory", message = ("%s: %.2f MB more than after a quarter of the time"):format(what,
        (late[what] - before) / 1e6) }
    end
  end
  return { rounds = n, early = early, late = late }
end)
