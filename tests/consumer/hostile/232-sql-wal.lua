-- makes its database one in WAL mode, then truncates the -shm file of an open one, whose pages are mapped into memory
-- expect: any
-- grants: {"read": ["rille.home"], "write": ["rille.home"]}
local rille = require "rille"
local db = rille.home .. "/x.db"
local function tx(name, body) return rille.step(name, { effect = "tx", db = db, retry = 1 }, body) end
tx("make", function(_, ctx) ctx.db:exec "CREATE TABLE t(v); INSERT INTO t VALUES(1)" end)
rille.step("to WAL", function()
  local file = assert(io.open(db, "r+b"))
  file:seek("set", 18) -- the versions of the format; 2: WAL
  file:write "\2\2"
  file:close()
end)
return tx("truncate", function(_, ctx)
  ctx.db:exec "INSERT INTO t VALUES(2)"
  local shared = io.open(db .. "-shm", "r+b")
  if shared then
    shared:close()
    io.open(db .. "-shm", "wb"):close()
  end
  return ctx.db:query("SELECT count(*) AS n FROM t")[1].n
end)
