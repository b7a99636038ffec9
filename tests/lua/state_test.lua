-- run: ephemeral
-- Taking a state that was kept: what does not fit is refused before anything is changed.
local rille = require "rille"
local tap = require "tap"
local dev, nn = rille.device(), rille.nn

local path = os.tmpname()
rille.defer(function() os.remove(path) end)

local function linear(seed) return nn.linear(4, 3, { seed = seed }) end

-- Each thing that takes one, with a good state for it by name, and what it holds now.
local function takers()
  local model = linear(1)
  local opt, ema = rille.optim.adamw(model, { lr = 1e-3 }), rille.optim.ema(model)
  model(dev:ones { 2, 4 }):sum():backward()
  opt:step()
  local out = {}
  for _, taker in ipairs { { model, "model:load_state", "weight" }, { opt, "opt:load_state", "exp_avg.weight" },
    { ema, "ema:load_state", "weight" } } do
    local state, first = {}, nil
    for _, entry in ipairs(taker[1]:state()) do
      state[entry.name] = entry.tensor:detach():clone()
      if entry.name:find(taker[3], 1, true) then first = entry.name end
    end
    out[#out + 1] = { item = taker[1], verb = taker[2], state = state, name = first }
  end
  return out
end

local function held(item)
  local out = {}
  for i, entry in ipairs(item:state()) do out[i] = entry.tensor:detach():totable() end
  return out
end

local function with(state, name, tensor)
  local out = {}
  for key, value in pairs(state) do out[key] = value end
  out[name] = tensor
  return out
end

tap.test("a shape that broadcasts is not the shape", function()
  for _, t in ipairs(takers()) do
    local before = held(t.item)
    for _, shape in ipairs { { 1 }, { 1, 4 }, { 3, 1 }, { 4, 3 } } do
      tap.raises("state", ("%s: '%s' is [%s] in the state and [3, 4] in the"):format(t.verb, t.name,
        table.concat(shape, ", ")), t.item.load_state, t.item, with(t.state, t.name, dev:ones(shape)))
    end
    tap.equal(held(t.item), before)
  end
  local small, large = nn.mlp({ 4, 1, 2 }, { seed = 1 }), nn.mlp({ 4, 8, 2 }, { seed = 1 })
  local before = held(large)
  rille.data.save_tensors(path, small)
  tap.raises("state", "'1.bias' is [1] in the state and [8] in the model", large.load_state, large, path)
  tap.equal(held(large), before)
end)

tap.test("whole numbers and booleans do not become weights; floating types become each other", function()
  for _, t in ipairs(takers()) do
    local before = held(t.item)
    for _, dtype in ipairs { "bool", "i64", "u8" } do
      tap.raises("state", ("'%s' is %s in the state and f32 in the"):format(t.name, dtype), t.item.load_state, t.item,
        with(t.state, t.name, dev:ones { 3, 4, dtype = dtype }))
    end
    tap.equal(held(t.item), before)
    t.item:load_state(with(t.state, t.name, dev:full { 3, 4, value = 0.5, dtype = "bf16" }))
    for _, entry in ipairs(t.item:state()) do
      local tensor = entry.tensor:detach()
      if entry.name == t.name then tap.equal({ tensor.dtype, tensor:max():item() }, { "f32", 0.5 }) end
    end
  end
end)

tap.test("missing and extra names are reported, with similar names", function()
  for _, t in ipairs(takers()) do
    local before = held(t.item)
    tap.raises("state", "the state has 'other', which the", t.item.load_state, t.item,
      with(t.state, "other", dev:ones { 1 }))
    tap.raises("state", "strict = false", t.item.load_state, t.item, with(t.state, "other", dev:ones { 1 }))
    local misspelt = with(with(t.state, t.name, nil), t.name .. "s", dev:zeros { 3, 4 })
    tap.raises("state", ("'%s'"):format(t.name), t.item.load_state, t.item, misspelt)
    tap.raises("state", ("the state has '%ss'"):format(t.name), t.item.load_state, t.item, misspelt)
    tap.raises("state", ("did you mean '%s'?"):format(t.name), t.item.load_state, t.item,
      with(t.state, t.name .. "s", dev:zeros { 3, 4 }))
    tap.raises("invalid", "is not a tensor", t.item.load_state, t.item, with(t.state, t.name, 5))
    tap.raises("invalid", "did you mean 'strict'", t.item.load_state, t.item, t.state, { strikt = false })
    tap.equal(held(t.item), before)
    tap.equal(t.item:load_state(misspelt, { strict = false }), { missing = { t.name }, unexpected = { t.name .. "s" } })
    tap.equal(held(t.item), before)
    tap.raises("state", "is [1] in the state", t.item.load_state, t.item, with(t.state, t.name, dev:ones { 1 }),
      { strict = false })
  end
end)

tap.test("a file and a checkpoint are compared as a table is", function()
  local model = nn.mlp({ 4, 8, 2 }, { seed = 1 })
  local state = {}
  for _, entry in ipairs(model:state()) do state[entry.name] = entry.tensor:detach() * 2 end
  state.head = dev:ones { 2 }
  rille.data.save_tensors(path, state)
  local before = held(model)
  tap.raises("state", "the state has 'head', which the model does not have", model.load_state, model, path)
  tap.equal(held(model), before)
  tap.equal(model:load_state(path, { strict = false }), { missing = {}, unexpected = { "head" } })
  tap.equal(model:parameters()[2].tensor:detach():totable(), state[model:parameters()[2].name]:totable())

  local folder = path .. ".d"
  rille.defer(function() os.execute("rm -rf " .. folder) end)
  local deep = nn.mlp({ 4, 8, 8, 2 }, { seed = 1 })
  rille.checkpoint.save({ deep }, { directory = folder, step = 1 })
  local want = held(deep)
  for _, p in ipairs(deep:parameters()) do p.tensor:detach():zero_() end
  rille.checkpoint.load({ deep }, folder)
  tap.equal(held(deep), want)
  tap.raises("state", "'3.bias' is [8] in the state and [2] in the model", rille.checkpoint.load,
    { nn.sequential { nn.linear(4, 8), nn.dropout(0), nn.linear(8, 2), nn.dropout(0), nn.linear(8, 2) } }, folder)
end)

tap.test("state() itself is a state, also of another model", function()
  local one, other = linear(1), linear(2)
  other:load_state(one:state())
  tap.equal(held(other), held(one))
  tap.raises("invalid", "load_state", other.load_state, other, 5)
end)

tap.done()
