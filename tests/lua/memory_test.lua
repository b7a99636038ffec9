-- run: ephemeral
-- The owners of memory: the message when memory runs out.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()
local nn = rille.nn

-- name -> number of buffers, of what is live now.
local function owners(text)
  local list = {}
  text = (text or dev:memory().summary):gsub("^.-; by owner: ", ""):gsub("%. Use a smaller.*", "")
  for name, buffers in (text .. ", "):gmatch("(.-) [%d.]+ %a?B in (%d+),? ?") do list[name] = tonumber(buffers) end
  return list
end

local function live()
  dev:synchronize()
  collectgarbage()
  collectgarbage()
  return owners()
end

-- With the line of the caller, as for owners.
local function here(what)
  local _, position = pcall(error, "", 3)
  return what .. " at " .. tostring(position):match("memory_test.lua:%d+")
end

local sizes = { layers = 2, heads = 2, width = 32, context = 16, vocab = 64 }
local x = dev:tensor({ { 1, 2, 3, 4 } }, { dtype = "i64" })

tap.test("what is kept of freed memory can be given back, and the peak begins anew", function()
  local big = dev:ones { 1024, 1024 }
  big:sum():item()
  big:free()
  dev:synchronize()
  tap.ok(dev:memory().cached >= 4 * 2 ^ 20, dev:memory().cached)
  dev:release_cache()
  tap.equal(dev:memory().cached, 0)
  tap.ok(dev:memory().peak > dev:memory().live)
  dev:reset_peak()
  tap.equal(dev:memory().peak, dev:memory().live)
  tap.raises("invalid", "limit_memory: -1 bytes is not a valid limit", function() dev:limit_memory(-1) end)
end)

tap.test("a training's parts", function()
  local model, parameters = nn.gpt(sizes), here "parameters of Gpt"
  local n = #model:parameters()
  tap.equal(live()[parameters], n)
  local opt, state = rille.optim.adamw(model:parameters()), here "state of adamw"
  tap.equal(live()[state], 2 * n + 2)                  -- two each, the step and the rate
  local ema, averages = rille.optim.ema(model), here "moving averages"
  tap.equal(live()[averages], n)
  local loss = model(x):cross_entropy(x)
  loss:item()
  local before = live()
  tap.ok(before["activations kept for backward"] > 10, dev:memory().summary)
  tap.equal(before.gradients, nil)
  loss:backward()
  local after = live()
  tap.equal(after.gradients, n)
  tap.equal(after["activations kept for backward"], 1, "the loss itself")
  loss = nil
  tap.equal(live()["activations kept for backward"], nil)
  opt:step()
  ema:update()
  after = live()
  tap.equal({ after.gradients, after[parameters], after[state] }, { nil, n, 2 * n + 2 })

  -- An error has the same list.
  dev:limit_memory(dev:memory().live + dev:memory().cached + 1e6)
  local err = tap.raises("memory", "", function() return dev:ones { 64, 1024, 1024 }:sum():item() end)
  dev:limit_memory(0)
  tap.equal(owners(err.hint)[parameters], n)
  tap.equal(owners(err.hint)[state], 2 * n + 2)
end)

tap.test("a compiled training's parts", function()
  local model, parameters = nn.mlp { 4, 8, 2 }, here "parameters of Mlp"
  local data, told = dev:randn { 3, 4 }, here "randn"
  local step = rille.compile(function(t)
    local loss = model(t):square():mean()
    loss:backward()
    return loss
  end, { accumulate = 2 })
  local loss
  for _ = 1, 5 do loss = step(data) end                -- its gradients go from call to call
  local now = live()
  tap.equal({ now[parameters], now.gradients, now[told] }, { 4, 4, 1 })
  tap.equal(now["activations kept for backward"], nil)
  local results = 0
  for name, buffers in pairs(now) do
    if name:find "^results of the compiled function at memory_test.lua" then results = buffers end
  end
  tap.equal(results, 1, loss)
end)

tap.test("in a smaller type, with masters", function()
  local model, parameters = nn.linear(8, 8), here "parameters of Linear"
  model:to("bf16")
  local opt, state = rille.optim.sgd(model:parameters(), { momentum = 0.9 }), here "state of sgd"
  local now = live()
  tap.equal({ now[parameters], now[state] }, { 2, 2 * 2 + 2 })
  model(dev:ones { 1, 8, dtype = "bf16" }):sum():backward()
  rille.optim.clip_grad_norm(model:parameters(), 1)
  tap.equal(live().gradients, 2)
  opt:zero_grad()
  tap.equal(live().gradients, nil)
end)

tap.test("what is not trained, kept keys, and tensors of the user", function()
  local norm, others = nn.batch_norm(4), here "other tensors of BatchNorm"
  local list, told = dev:tensor { 1, 2, 3 }, here "data from the host"
  local many, made = {}, nil
  for i = 1, 3 do many[i], made = dev:zeros { 100 }, here "zeros" end
  local own, leaf = (dev:rand { 8 } * 2):detach():requires_grad_(), here "parameters"
  local now = live()
  tap.equal({ now[others], now[told], now[made], now[leaf] }, { 2, 1, 3, 1 })
  local attn, cache = nn.attention(8, 2, { causal = true }), { length = 0, context = 4 }
  local y = rille.no_grad(attn, dev:ones { 1, 1, 8 }, { cache = cache })
  y:totable()
  local kept = 0
  for name, buffers in pairs(live()) do
    if name:find "^kept keys and values at memory_test.lua" then kept = buffers end
  end
  tap.equal(kept, 2)
  tap.ok(norm and list and many and own)
end)

tap.test("a module in a module stands under the outer one", function()
  local Pair = nn.class("Pair", {
    init = function(self) self.a, self.b = nn.linear(2, 2), { nn.linear(2, 2, { bias = false }) } end,
    forward = function(self, t) return self.b[1](self.a(t)) end,
  })
  local pair, told = Pair(), here "parameters of Pair"
  local now = live()
  tap.equal(now[told], 3)
  for name in pairs(now) do tap.ok(not name:find "^parameters of Linear", name) end
  tap.ok(pair)
end)

tap.done()
