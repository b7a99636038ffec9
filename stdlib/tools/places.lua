-- Internal: the parts of a training's state, in the order that checkpoints and ranks use.
local rille = require "rille"

local places = {}

local function kind_of(item)
  if type(item) == "userdata" then return "optimizer" end
  if type(item) == "table" then
    if item.parameters then return "model" end
    if item.state and item.load_state then return "data" end
  end
  rille.error { kind = "invalid", message = "checkpoint: " .. tostring(item) .. " cannot be saved",
    hint = "state takes models, optimizers, data sets, and tables with state() and load_state()" }
end

-- Returns the kind of an item. A data set's __index raises on unknown names, so check the fields in this order.
local function classify(item)
  if type(item) == "table" and rawget(item, "_set") ~= nil then return "data" end
  if type(item) == "table" and rawget(item, "_averages") ~= nil then return "ema" end
  return kind_of(item)
end

-- Returns a list of { kind =, name =, item = }. An item's name in the state is "model", "optimizer" or "data"; a
-- second model is "model-2"; if the state is a table with string keys, the keys are the names.
function places.of(state)
  local out, seen = {}, {}
  for key, item in pairs(state) do
    local kind = classify(item)
    local name = type(key) == "string" and key or kind
    seen[name] = (seen[name] or 0) + 1
    if seen[name] > 1 then name = name .. "-" .. seen[name] end
    out[#out + 1] = { kind = kind, name = name, item = item }
  end
  return out
end

-- Returns the tensors of a state as a list of { part =, name =, tensor = }, and its plain data by the parts' names.
function places.tensors_of(state)
  local list, plain = {}, {}
  for _, place in ipairs(places.of(state)) do
    if place.kind == "data" then
      plain[place.name] = place.item:state()
    else
      for _, t in ipairs(place.item:state()) do
        list[#list + 1] = { part = place.name, name = t.name, tensor = t.tensor }
      end
    end
  end
  return list, plain
end

return places
