-- rows, constants and columns that take memory outside of Lua, and pragmas that change the whole process
-- expect: memory or timeout
-- grants: {"read": ["rille.home"], "write": ["rille.home"]}
local rille = require "rille"
local found
local function tx(name, body)
  return pcall(rille.step, name, { effect = "tx", db = rille.home .. "/x.db" }, function(_, ctx) return body(ctx.db) end)
end
tx("pragmas", function(db)
  for _, p in ipairs { "hard_heap_limit = 10000", "soft_heap_limit = 10000", "mmap_size = 1e12", "cache_size = 1e9",
    "temp_store = 2", "threads = 8", "writable_schema = 1", "wal_checkpoint", "journal_mode = off" } do
    local ok, e = pcall(db.query, db, "PRAGMA " .. p)
    if ok then found = p end
  end
end)
if found then return "ESCAPED " .. found end
local many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT "
tx("columns", function(db)
  db:query("SELECT " .. ("randomblob(1000000),"):rep(1500) .. " 1")
end)
tx("constants", function(db)
  local list = {}
  for i = 1, 5000 do list[i] = ("printf('%%%dd', 1)"):format(1e6 - i) end
  db:query("SELECT 1 WHERE typeof(1) IN (" .. table.concat(list, ",") .. ")")
end)
tx("wide", function(db)
  db:query("SELECT " .. ("randomblob(260000),"):rep(99) .. " 1")
end)
tx("function", function(db)
  db:query("SELECT replace(hex(zeroblob(1000000)), '0', hex(zeroblob(1000000)))")
end)
local ok, e = tx("rows", function(db) return #db:query(many .. "x FROM c") end)
error(e)
