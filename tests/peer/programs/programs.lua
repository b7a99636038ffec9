-- run: ephemeral
-- Runs the programs that programs.py made, in each mode, and writes what they gave. See there.
local rille = require "rille"
local dev = rille.device("cpu")
local args = rille.args { dir = "", modes = "" }
local dir, modes = args.dir, args.modes
local P, got, errors = {}, {}, {}
assert(loadfile(dir .. "/programs_made.lua"))()(P)
local given = rille.data.load_tensors(dir .. "/given.safetensors")
local dice = 1
local function chance(one_in)
  dice = (dice * 16807) % 2147483647
  return dice % one_in == 0
end
local function nothing() end

-- Reads, collects and drops at random, so that memory is given back and used again while work is pending.
local function rest(v, name)
  if name then
    if chance(2) then v[name] = nil end
  elseif chance(3) then
    collectgarbage()
  elseif chance(2) then
    v:text()
  end
end

local function fresh(at, which, names)
  local v = {}
  for _, n in ipairs(names) do v[n] = given[at .. "." .. which .. "." .. n]:clone() end
  return v
end

local function plain(at, p, which, mode)
  local v, leaves = fresh(at, which, p.inputs), fresh(at, which, p.leaves)
  for n, t in pairs(leaves) do v[n] = t:requires_grad_() end
  local held = {}
  for _, n in ipairs(p.inputs) do held[n] = v[n] end
  local prefix = ("%d.%s.%s."):format(at, mode, which)
  local function keep(name, t) got[prefix .. name] = t:detach():clone() end
  p.fn(v, mode == "all" and keep or nothing, mode == "plain" and rest or nothing)
  for _, n in ipairs(p.outputs) do got[prefix .. "out." .. n] = v[n]:detach():clone() end
  for n, t in pairs(leaves) do if t.grad then got[prefix .. "grad." .. n] = t.grad:clone() end end
  for n, t in pairs(held) do got[prefix .. "end." .. n] = t:clone() end
end

local function compiled(at, p)
  local leaves, graded = fresh(at, "A", p.leaves), {}
  for _, t in pairs(leaves) do t:requires_grad_() end
  local update = rille.compile(function(...)
    local v, out = {}, {}
    for i, n in ipairs(p.inputs) do v[n] = select(i, ...) end
    for n, t in pairs(leaves) do v[n] = t end
    p.fn(v, nothing, nothing)
    for i, n in ipairs(p.outputs) do out[i] = v[n]:detach() end
    graded = {}
    for _, n in ipairs(p.leaves) do
      local t = leaves[n]
      if t.grad then
        graded[#graded + 1] = n
        out[#out + 1] = t.grad * 1
        t:set_grad()
      end
    end
    return unpack(out, 1, #out)
  end)
  local kept = nil
  for call = 1, 6 do
    local which = call % 2 == 1 and "A" or "B"
    local v = fresh(at, which, p.inputs)
    rille.no_grad(function() for n, t in pairs(leaves) do t:copy_(given[at .. "." .. which .. "." .. n]) end end)
    local list = {}
    for i, n in ipairs(p.inputs) do list[i] = v[n] end
    local out = { update(unpack(list, 1, #list)) }
    kept = kept or graded
    local prefix = ("%d.compiled%d.%s."):format(at, call, which)
    for i, n in ipairs(p.outputs) do got[prefix .. "out." .. n] = out[i]:clone() end
    for i, n in ipairs(kept) do got[prefix .. "grad." .. n] = out[#p.outputs + i]:clone() end
    for _, n in ipairs(p.inputs) do got[prefix .. "end." .. n] = v[n]:clone() end
    if chance(3) then collectgarbage() end
  end
end

local function try(at, mode, fn, ...)
  local ok, e = pcall(fn, ...)
  if not ok then errors[at .. " " .. mode] = tostring(type(e) == "table" and e.message or e) end
  local fine, late = pcall(dev.synchronize, dev)
  if ok and not fine then errors[at .. " " .. mode] = tostring(type(late) == "table" and late.message or late) end
end

for at, p in ipairs(P) do
  if modes:find("all", 1, true) then try(at, "all A", plain, at, p, "A", "all") end
  if modes:find("plain", 1, true) then
    try(at, "plain A", plain, at, p, "A", "plain")
    try(at, "plain B", plain, at, p, "B", "plain")
  end
  if modes:find("compiled", 1, true) then try(at, "compiled", compiled, at, p) end
end
rille.data.save_tensors(dir .. "/got.safetensors", got)
return { errors = next(errors) and errors or { none = "" } }
