-- Internal: shared by the modules of rille.nn: checks, initial weights, and loading of published weights.
local native = require "rille.native"
local rille = require "rille"

local tools = {}

function tools.invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

function tools.normal(shape, deviation)
  return (rille.device():randn(shape) * deviation):detach():requires_grad_()
end

-- The model's device: the device of its first parameter, or the default device if it has none.
function tools.device_of(model)
  local first = model:parameters()[1]
  return first and rille.device(first.tensor.device) or rille.device()
end

function tools.check_sizes(verb, options)
  for name, n in pairs(options) do
    if n == false then tools.invalid(("%s: %s is needed"):format(verb, name), name .. " = a whole number from 1 on") end
    if type(n) ~= "number" or n < 1 or n ~= math.floor(n) then
      tools.invalid(("%s: %s = %s; a whole number from 1 on is needed"):format(verb, name, tostring(n)))
    end
  end
end

function tools.check_shared(verb, what, n, among, parts)
  if n % parts == 0 then return end
  tools.invalid(("%s: %s = %d cannot be shared among %s = %d"):format(verb, what, n, among, parts),
    ("%s must be a multiple of %s"):format(what, among))
end

-- The width of an attention head: `given`, or width / heads.
function tools.head_width(verb, width, heads, given)
  if given then tools.check_sizes(verb, { head_width = given })
  else tools.check_shared(verb, "width", width, "heads", heads) end
  return given or width / heads
end

-- Finds a tensor of a file: the file's names may have one of these prefixes, and norms may have their old names (as
-- in bert-base-uncased).
local prefixes = { "", "transformer.", "model.", "bert." }

local function find(tensors, name)
  local old = name:gsub("LayerNorm%.weight$", "LayerNorm.gamma"):gsub("LayerNorm%.bias$", "LayerNorm.beta")
  for _, prefix in ipairs(prefixes) do
    local found = tensors[prefix .. name] or tensors[prefix .. old]
    if found then return found end
  end
end

-- A file may contain more tensors than the model needs: masks, counters, another head. But if it contains another
-- layer, or a bias where the model has only a weight, the file is of another model, whose outputs would be silently
-- wrong: raises.
local function check_left(verb, names, taken)
  local layers, modules = {}, {}
  for name in pairs(taken) do
    layers[name:gsub("%f[%d]%d+%f[%D]", "#")] = true
    modules[name:match("^.*%.") or ""] = name
  end
  for _, name in ipairs(names) do
    for _, prefix in ipairs(prefixes) do
      local bare = name:sub(1, #prefix) == prefix and name:sub(#prefix + 1)
      if bare and taken[bare] then break end
      local beside = bare and modules[bare:match("^.*%.")]
      if beside and (bare:find("LayerNorm%.") or bare:find("num_batches_tracked$")) then beside = nil end
      if bare and (layers[bare:gsub("%f[%d]%d+%f[%D]", "#")] or beside) then
        rille.error { kind = "state", message = ("%s: the file has '%s', which the model lacks"):format(verb,
          name), hint = beside and "it belongs to '" .. beside .. "', which is loaded: is this another kind of model?"
            or "it has more layers than the model" }
      end
    end
  end
end

-- Copies the tensors of a file, an index or a folder into a model's parameters one by one, so that only one is in
-- memory at a time. names(parameter name) returns the tensor's name in the file, and whether the tensor is stored
-- transposed (GPT-2's [inputs, outputs]).
function tools.adopt(model, verb, path, names)
  if type(path) ~= "string" then
    tools.invalid(("%s: weights is a %s"):format(verb, type(path)),
      "weights = the name of a file, an index or a folder")
  end
  local tensors, there = native.tensors_open(path)
  local taken = {}
  rille.no_grad(function()
    for _, p in ipairs(model:state()) do
      local name, turned = names(p.name)
      if name then
        local source = find(tensors, name)
        if not source then
          rille.error { kind = "state", message = ("%s: the file has no '%s' for '%s'"):format(verb, name, p.name),
            hint = "are these weights of this kind of model, with the same number of layers?" }
        end
        taken[name] = true
        if turned then source = source:transpose(1, 2) end
        local given, here = source:shape(), p.tensor:shape()
        if table.concat(given, " ") ~= table.concat(here, " ") then
          rille.error { kind = "state", message = ("%s: '%s' is [%s] in the file and [%s] in the model"):format(verb,
            name, table.concat(given, ", "), table.concat(here, ", ")) }
        end
        p.tensor:detach():copy_(source)
      end
    end
    check_left(verb, there, taken)
  end)
  return model
end

-- Fills in the default options: unknown options raise; the options listed in `sizes` must be whole numbers of at
-- least 1.
function tools.options(verb, given, defaults, sizes)
  local known, o = {}, {}
  for name in pairs(defaults) do known[#known + 1] = name end
  for _, name in ipairs(sizes) do if defaults[name] == nil then known[#known + 1] = name end end
  native.check_options(given, verb, known)
  for name, v in pairs(defaults) do o[name] = v end
  for name, v in pairs(given or {}) do o[name] = v end
  local checked = {}
  for _, name in ipairs(sizes) do checked[name] = o[name] or false end
  tools.check_sizes(verb, checked)
  if o.heads and o.width and not o.head_width then tools.check_shared(verb, "width", o.width, "heads", o.heads) end
  return o
end

-- Checks that ids is [batch, length] and returns the length.
function tools.length_of(model, ids)
  if type(ids) ~= "userdata" or ids:dim() ~= 2 then
    tools.invalid(("%s: expected ids [batch, length], got %s"):format(tostring(model), tostring(ids)),
      "dev:tensor({ { 1, 2, 3 } }, { dtype = \"i64\" }) is one row of ids; ids:unsqueeze(1) makes one")
  end
  local length = ids:size(2)
  if length <= model.context then return length end
  tools.invalid(("the model sees %d tokens at a time, got %d"):format(model.context, length),
    "cut the input, or make the model with a larger context")
end

-- Computes the logits by the model's head, or by its token embedding if the model has no separate head.
function tools.logits(model, x)
  local head = rawget(model, "head")
  if head then return head(x) end
  return x:linear(model.tokens.weight)
end

return tools
