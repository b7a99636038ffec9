-- run: ephemeral
-- What training and evaluation need of memory at most. The peak is that of the process: smaller things come first.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()

local folder = tap.folder()
local file = io.open(folder .. "/text", "wb")
file:write(("abc def "):rep(4000))
file:close()

local function now()
  collectgarbage()
  dev:synchronize()
  return dev:memory()
end

tap.test("the recordings of a function share one arena, whichever needs most", function()
  local w = dev:ones { 256 }
  local f = rille.compile(function(x) return ((x * 2):cumsum(1):exp() * w):cumsum(2):sum() end)
  local function call(n) return f(dev:full { n, 256, value = 1 / 1024 }):item() end
  local want = { [100] = call(100), [200] = call(200), [300] = call(300) }
  local before = now().live
  for _, n in ipairs { 200, 200, 100, 100, 300, 300, 200, 100, 300 } do tap.equal(call(n), want[n]) end
  f(dev:ones { 300, 256 })
  local arena, grown = f:explain().arena_bytes, now().live - before
  tap.equal(f:explain().variants, 3)
  tap.ok(arena >= 2 * 300 * 256 * 4, arena)
  tap.ok(grown < 1.3 * arena, ("%d bytes beside an arena of %d"):format(grown, arena))
end)

tap.test("a batch in parts needs the memory of one part, and the gradients", function()
  local model = rille.nn.gpt { layers = 2, heads = 2, width = 32, context = 32, vocab = 64 }
  local opt = rille.optim.adamw(model, { lr = 1e-3 })
  local data = rille.data.bytes(folder .. "/text", { batch = 8, context = 32 })
  local before = now().live
  local update = rille.compile(function(x, y)
    local loss = model(x:clamp(0, 63)):cross_entropy(y:clamp(0, 63))
    loss:backward()
    opt:step()
    return loss
  end, { accumulate = 4 })
  update(data:next()):item()           -- as it is, which takes more than a recording
  local plainly = dev:memory().peak
  for _ = 1, 11 do update(data:next()):item() end
  local arena, grown = update:explain().arena_bytes, now().live - before
  local gradients = model:count() * 4
  tap.equal(update:explain().variants, 3)
  tap.ok(arena > 4 * gradients, arena)
  tap.ok(grown < 1.5 * arena + 2 * gradients, ("%d bytes beside an arena of %d"):format(grown, arena))
  local more = dev:memory().peak - plainly
  tap.ok(more < 2 * gradients, ("%d bytes more than the first call, with an arena of %d"):format(more, arena))
end)

tap.test("evaluation keeps one batch, and of it what is still used", function()
  local model = rille.nn.gpt { layers = 8, heads = 2, width = 64, context = 64, vocab = 128, dropout = 0.1 }
  local data = rille.data.bytes(folder .. "/text", { batch = 32, context = 64 })
  local before = now()
  local loss = rille.train.validation(model, data, { batches = 2, dtype = "bf16" })
  local grown = dev:memory().peak - before.live
  local widest = 32 * 64 * 4 * 64 * 4
  tap.ok(grown < 5 * widest, ("%.1f times the widest layer"):format(grown / widest))
  tap.ok(model.training)
  local plain = rille.train.validation(model, data, { batches = 2 })
  tap.ok(loss ~= plain and math.abs(loss - plain) < 0.05, ("%g in bf16, %g"):format(loss, plain))
  tap.raises("invalid", "f33", rille.train.validation, model, data, { dtype = "f33" })
  tap.raises("invalid", "did you mean 'dtype'", rille.train.validation, model, data, { dtyp = "bf16" })
end)

tap.done()
