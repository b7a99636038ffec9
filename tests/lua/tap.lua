-- A tiny TAP harness (testanything.org). Tests are functions; a failed check raises.
--   local tap = require "tap"
--   tap.test("adds", function() tap.equal(1 + 1, 2) end)
--   tap.done()
local rille = require "rille"
local tap = {}

local count = 0

local function show(v)
  if type(v) == "string" then return ("%q"):format(v) end
  if type(v) ~= "table" or tostring(v) ~= "table" and not tostring(v):find("^table") then return tostring(v) end
  local parts = {}
  for k, x in pairs(v) do parts[#parts + 1] = tostring(k) .. "=" .. show(x) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for k, v in pairs(a) do if not same(v, b[k]) then return false end end
  for k in pairs(b) do if a[k] == nil then return false end end
  return true
end

function tap.test(name, fn)
  count = count + 1
  local ok, err = pcall(rille.scope, name, fn)
  print((ok and "ok " or "not ok ") .. count .. " - " .. name)
  if not ok then
    local text = tostring(err)
    if type(err) == "table" and err.traceback then text = text .. "\n" .. err.traceback end
    print("# " .. (text:gsub("\n", "\n# ")))
  end
end

function tap.equal(got, want)
  if not same(got, want) then error("got " .. show(got) .. ", expected " .. show(want), 2) end
end

function tap.ok(v, why)
  if not v then error(why or "expected a true value", 2) end
end

-- fn must raise; the error's kind and a part of its text are checked. Gives the error.
function tap.raises(kind, text, fn, ...)
  local ok, err = pcall(fn, ...)
  if ok then error("expected an error of kind " .. tostring(kind), 2) end
  if kind then
    if type(err) ~= "table" then error("expected a structured error, got " .. tostring(err), 2) end
    if err.kind ~= kind then error("expected kind " .. kind .. ", got " .. tostring(err), 2) end
  end
  if not tostring(err):find(text, 1, true) then error("expected '" .. text .. "' in: " .. tostring(err), 2) end
  return err
end

-- A new folder, which ends with the scope that asks for it.
function tap.folder()
  local folder = os.tmpname()
  os.execute(("rm %s && mkdir %s"):format(folder, folder))
  rille.defer(function() os.execute("rm -rf " .. folder) end)
  return folder
end

-- Of instances, in their order.
function tap.names(boxes)
  local out = {}
  for i, box in ipairs(boxes) do out[i] = box.name end
  return out
end

function tap.done() print("1.." .. count) end

return tap
