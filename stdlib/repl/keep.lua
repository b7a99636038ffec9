--- Keeps a session's variables in the run's folder, for `rille resume`. What is small is written after each entry, so
--- that it survives a crash; tensors and models in the background, once they are computed. What is large is written
--- when the session is suspended. A model is made anew by the entry that made it, then gets its tensors; so that entry
--- must be one call of rille.nn with plain values.

local M = {}

local bytes_max = 8 * 2 ^ 20  -- of one variable after each entry; a larger one is written at :suspend

local compute_wait_s = 10
local late = ("its tensors were not computed within %d s"):format(compute_wait_s)
local no_recipe = "no entry of one call of rille.nn with plain values made it"
local no_name = "its name is no name of Lua's"

-- Other names would lead out of the folder of the kept files.
local function is_name(text) return text:find("^[%a_][%w_]*$") ~= nil end

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
    -- Lua may read what follows a string without an end otherwise.
    if not plain or token.open then return nil end
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
  local written = {}  -- by variable: what its file has, or will have once it is computed

  local function is_result(name) return name:find("^_%d*$") or name == "_err" end

  -- The tensors of a variable, and how to make it anew; or nil if that is not known.
  local function tensors_of(name, value)
    if kind_of(value) == "tensor" then
      return { { name = "value", tensor = value } },
        { device = value.device, requires_grad = value.requires_grad and "true" or nil }
    end
    local recipe = recipe_of(p, name, made_by[name])
    if recipe then return value:state(), { recipe = recipe } end
  end

  -- How many bytes the tensors have, and a text that is another one after each write to them.
  local function change_of(list)
    local bytes, changes = 0, {}
    for i, each in ipairs(list) do
      local size, change = p.tensor_change(each.tensor)
      bytes, changes[i] = bytes + size, change
    end
    return bytes, table.concat(changes, " ")
  end

  -- Starts to write a variable's tensors, if they have changed. Gives nothing, or why they are not written.
  local function keep_tensors(name, value, limit)
    if not is_name(name) then return no_name end
    local list, metadata = tensors_of(name, value)
    if not list then return no_recipe end
    local bytes, change = change_of(list)
    if written[name] and written[name].change == change and rawequal(written[name].value, value) then return end
    if bytes > limit then return "it has more than 8 MB: :suspend keeps it" end
    written[name] = { value = value, change = change }
    p.keep_tensors(name, list, metadata)
  end

  -- Drops the files of variables that hold no such value any more.
  local function drop_others(tensors)
    for name in pairs(written) do
      if not tensors[name] then
        written[name] = nil
        p.drop_tensors(name)
      end
    end
  end

  -- The variables that can be written, as data; and why the others cannot.
  local function variables(limit)
    local values, functions, tensors, machines, lost = {}, {}, {}, {}, {}
    for _, name in ipairs(session.own_names()) do
      local value = p.step(p.variables(), name)
      if is_result(name) then  -- results are not kept
      elseif type(value) == "function" then
        local payload, why = p.ship(value)
        if payload then functions[name] = payload else lost[name] = why end
      elseif p.class(value) == "Instance" then
        machines[name] = value.name
      elseif kind_of(value) == "tensor" or is_model(value) then
        local fine, why = pcall(keep_tensors, name, value, limit)
        if not fine then why = p.error(why).message end
        lost[name], tensors[name] = why, not why or nil
      elseif type(value) ~= "nil" then
        local text, why
        if limit == math.huge or not rawequal(large[name], value) then text, why = p.encode(value) end
        if not why and (not text or #text > limit) then
          text, why, large[name] = nil, "it is large: it is kept by :suspend", value
        end
        if text then values[name] = text else lost[name] = why end
      end
    end
    drop_others(tensors)
    return { values = values, functions = functions, tensors = tensors, machines = machines, lost = lost }
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
    local now = {}
    for _, name in ipairs(session.own_names()) do
      local value = p.step(p.variables(), name)
      if not rawequal(seen[name], value) then made_by[name] = entry end
      now[name] = value
    end
    seen = now
    write(variables(bytes_max))
  end

  -- Writes all variables. Waits until tensors are computed, but not for ever.
  function self.save()
    local kept, began, wait_s = variables(math.huge), p.now_ns(), 0.01
    while p.tensors_under_way() > 0 and p.now_ns() - began < compute_wait_s * 1e9 do
      require("rille").sleep(wait_s)
      wait_s = math.min(2 * wait_s, 0.5)
    end
    done = true
    for name in pairs(kept.tensors) do
      kept.lost[name] = p.keep_failure(name) or p.tensors_under_way() > 0 and not p.has_tensors(name) and late or nil
    end
    for name in pairs(kept.lost) do kept.tensors[name] = nil end
    write(kept)
    return kept.lost
  end

  local function restore_tensor(name, tensors, metadata)
    local rille = require "rille"
    local there, where = pcall(rille.device, metadata.device)
    local tensor = there and tensors.value:to(where) or tensors.value
    if metadata.requires_grad then tensor:requires_grad_(true) end
    p.set(name, tensor)
  end

  -- The recipe comes from a file, which others may have changed: only what `tensors_of` writes is run.
  local function restore_model(name, tensors, recipe)
    if recipe_of(p, name, recipe) ~= recipe then return no_recipe end
    local model = p.compile(recipe, "=kept")
    local fine = model and pcall(model)
    local value = p.step(p.variables(), name)
    if not fine or not pcall(value.load_state, value, tensors) then
      return "it could not be made again by: " .. recipe
    end
  end

  local function restore_file(name)
    local tensors, metadata = require("rille").data.load_tensors(p.tensors_path(name))
    local why
    if metadata.recipe then why = restore_model(name, tensors, metadata.recipe)
    else restore_tensor(name, tensors, metadata) end
    if why then return why end
    local value = p.step(p.variables(), name)
    seen[name], made_by[name] = value, metadata.recipe
    written[name] = { value = value, change = select(2, change_of((tensors_of(name, value)))) }
  end

  local function restore_tensors(kept, back, lost)
    for name in pairs(kept.tensors or {}) do
      local why = is_name(name) and "it was not computed yet, or not written" or no_name
      if is_name(name) and p.has_tensors(name) then
        local fine, problem = pcall(restore_file, name)
        why = problem and (fine and problem or p.error(problem).message)
      end
      if why then lost[name] = why else back[#back + 1] = name end
    end
  end

  -- Gives variables their machines again, of those that are rented still; and tells what is rented.
  local function restore_machines(machines, back, lost)
    local holders = {}
    local rented = p.rented()
    for _, lease in ipairs(rented) do holders[lease.name] = {} end
    for name, lease in pairs(machines) do
      local fine, box
      if holders[lease] then fine, box = pcall(require("rille").rent, lease) end
      if fine then
        p.set(name, box)
        back[#back + 1] = name
        table.insert(holders[lease], name)
      else
        lost[name] = box and p.error(box).message or "this session does not rent " .. lease .. " any more"
      end
    end
    for _, lease in ipairs(rented) do
      local names = table.concat(holders[lease.name], ", ")
      local way = names ~= "" and "it is in " .. names or ('get it back with box = rille.rent("%s")'):format(lease.name)
      print(("still rented: %s, at %s per hour; %s"):format(lease.name, lease.price, way))
    end
  end

  -- Brings back what an earlier process of this session has kept, and says what.
  function self.restore()
    local text = p.read_kept("variables")
    local kept, back = text and p.decode(text) or { values = {}, functions = {}, lost = {} }, {}
    local lost = kept.lost
    restore_machines(kept.machines or {}, back, lost)
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
