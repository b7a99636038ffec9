--- Keeps a session's variables in the run's folder, for `rille resume`. Plain values, tables and functions are written
--- after each entry, so that they survive a crash; tensors and models when the session is suspended, since writing them
--- waits until they are computed. A model is made anew by the entry that made it, then gets its tensors; so that entry
--- must be one call of rille.nn with plain values.

local M = {}

local bytes_max = 8 * 2 ^ 20  -- of one variable after each entry; a larger one is written at :suspend

local compute_wait = "10s"
local late = "a tensor was not computed within " .. compute_wait

local function kind_of(value) return require("rille.native").kind(value) end

local function is_model(value)
  return type(value) == "table" and getmetatable(value) ~= nil and tostring(value):find("^%w+: %d+ parameters$") ~= nil
end

-- The entry's text if all it does is to make `name` by one call of rille.nn with plain values.
local function recipe_of(p, name, entry)
  local call = entry and entry:match("^%s*local%s+" .. name .. "%s*=%s*(rille%.nn%.%w+%s*[%({\"'].*)$")
    or entry and entry:match("^%s*" .. name .. "%s*=%s*(rille%.nn%.%w+%s*[%({\"'].*)$")
  if not call then return nil end
  local tokens = p.tokens(call)
  for i, token in ipairs(tokens) do
    local text, next_token = call:sub(token.first, token.last), tokens[i + 1]
    local following = next_token and call:sub(next_token.first, next_token.last)
    local plain = token.kind == "number" or token.kind == "string" or token.kind == "constant"
      or (token.kind == "mark" and text:find("^[%(%){},=%-%.;]$"))
      or (token.kind == "name" and (i <= 5 or following == "="))
    if not plain then return nil end
  end
  return name .. " = " .. call
end

--- Makes the keeper of a session.
---@param session table of rille.repl
---@return table keeper `note()` after each entry, `save()` before the session is suspended, `restore()` at its start
---@mark ephemeral
function M.new(session)
  local p = session.primitives
  local self, last_text, made_by, seen, done = {}, nil, {}, {}, false
  -- Values that were too large after an entry: they are not tried again at each one.
  local large = setmetatable({}, { __mode = "v" })

  -- The variables that can be written, as data; and why the others cannot.
  local function plain_variables(limit)
    local values, functions, lost = {}, {}, {}
    for _, name in ipairs(session.own_names()) do
      local value = p.step(p.variables(), name)
      if name:find("^_%d*$") or name == "_err" then  -- results are not kept
      elseif type(value) == "function" then
        local payload, why = p.ship(value)
        if payload then functions[name] = payload else lost[name] = why end
      elseif kind_of(value) == "tensor" or is_model(value) then
        lost[name] = "tensors and models are kept by :suspend"
      elseif type(value) ~= "nil" then
        local text, why
        if limit == math.huge or not rawequal(large[name], value) then text, why = p.encode(value) end
        if not why and (not text or #text > limit) then
          text, why, large[name] = nil, "it is large: it is kept by :suspend", value
        end
        if text then values[name] = text else lost[name] = why end
      end
    end
    return { values = values, functions = functions, lost = lost }
  end

  -- Writes them, unless one takes longer to compute than a user would wait.
  local function save_tensors(tensors)
    local rille = require "rille"
    local fine, saved = pcall(rille.race, {
      function()
        rille.data.save_tensors(p.kept_path("tensors.safetensors"), tensors)
        return true
      end,
      function() rille.sleep(compute_wait) end,
    })
    if fine and saved then return true end
    return false, fine and late or tostring(saved)
  end

  -- The tensors that can be computed. The variables of the others are noted as lost.
  local function without_failed(tensors, kept)
    local left, failed = {}, {}
    for _, each in ipairs(tensors) do
      local variable = each.name:match("^[^/]*")
      local fine, why = save_tensors { each }
      if not fine then failed[variable] = why end
    end
    for variable, why in pairs(failed) do
      kept.lost[variable], kept.tensors[variable], kept.models[variable] = why, nil, nil
    end
    for _, each in ipairs(tensors) do
      if not failed[each.name:match("^[^/]*")] then left[#left + 1] = each end
    end
    return left
  end

  local function write(kept)
    local text = p.encode(kept)
    if text ~= last_text then
      p.write_kept("variables", text)
      last_text = text
    end
  end

  -- Remembers which entry made a variable, and writes what changed.
  function self.note(entry)
    if done then return end
    for _, name in ipairs(session.own_names()) do
      local value = p.step(p.variables(), name)
      if not rawequal(seen[name], value) then seen[name], made_by[name] = value, entry end
    end
    write(plain_variables(bytes_max))
  end

  -- Writes all variables. Waits until tensors are computed.
  function self.save()
    local kept, tensors = plain_variables(math.huge), {}
    done = true
    kept.tensors, kept.models = {}, {}
    for _, name in ipairs(session.own_names()) do
      local value = p.step(p.variables(), name)
      if name:find("^_") then
      elseif kind_of(value) == "tensor" then
        tensors[#tensors + 1] = { name = name, tensor = value }
        kept.tensors[name], kept.lost[name] = value.device, nil
      elseif is_model(value) then
        local recipe = recipe_of(p, name, made_by[name])
        kept.lost[name] = not recipe and "no entry of one call of rille.nn with plain values made it" or nil
        kept.models[name] = recipe
        for _, each in ipairs(recipe and value:state() or {}) do
          tensors[#tensors + 1] = { name = name .. "/" .. each.name, tensor = each.tensor }
        end
      end
    end
    local saved, why = true, nil
    if #tensors > 0 then saved, why = save_tensors(tensors) end
    if not saved and why ~= late then  -- one that cannot be computed does not take the others with it
      tensors = without_failed(tensors, kept)
      saved, why = #tensors == 0, why
      if #tensors > 0 then saved, why = save_tensors(tensors) end
    end
    if not saved then
      for name in pairs(kept.tensors) do kept.lost[name] = why end
      for name in pairs(kept.models) do kept.lost[name] = why end
      kept.tensors, kept.models = {}, {}
    end
    write(kept)
    return kept.lost
  end

  local function restore_tensors(kept, back, lost)
    if next(kept.tensors or {}) == nil and next(kept.models or {}) == nil then return end
    local rille = require "rille"
    local tensors = rille.data.load_tensors(p.kept_path("tensors.safetensors"))
    for name, device in pairs(kept.tensors) do
      local there, where = pcall(rille.device, device)
      p.set(name, there and tensors[name]:to(where) or tensors[name])
      back[#back + 1] = name
    end
    for name, recipe in pairs(kept.models) do
      local model = p.compile(recipe, "=kept")
      local fine = model and pcall(model)
      local value = p.step(p.variables(), name)
      local state = {}
      for key, tensor in pairs(tensors) do
        if key:sub(1, #name + 1) == name .. "/" then state[key:sub(#name + 2)] = tensor end
      end
      if fine and pcall(value.load_state, value, state) then
        made_by[name], seen[name] = recipe, value
        back[#back + 1] = name
      else
        lost[name] = "it could not be made again by: " .. recipe
      end
    end
  end

  -- Brings back what an earlier process of this session has kept, and says what.
  function self.restore()
    local text = p.read_kept("variables")
    if not text then return end
    local kept, back = p.decode(text), {}
    local lost = kept.lost
    for name, value in pairs(kept.values) do
      p.set(name, (p.decode(value)))
      back[#back + 1] = name
    end
    for name, payload in pairs(kept.functions) do
      local fn, why = p.unship(payload)
      if fn then
        p.set(name, fn)
        back[#back + 1] = name
      else
        lost[name] = why
      end
    end
    restore_tensors(kept, back, lost)
    table.sort(back)
    if #back > 0 then print("variables: " .. table.concat(back, ", ")) end
    local names = {}
    for name in pairs(lost) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do print(("not kept: %s: %s"):format(name, lost[name])) end
  end

  return self
end

return M
