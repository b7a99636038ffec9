-- asks for a database by names that SQLite treats specially, then runs endless and file-writing statements
-- expect: error
local rille = require "rille"
local leaks = {}
for _, db in ipairs { ":memory:", "", "file::memory:?cache=shared", "file:/tmp/rille-hostile.db?mode=rwc", "/tmp/rille-hostile.db", "x.db",
  "../../../tmp/rille-hostile.db", "/etc/passwd", "/dev/null", "\0", ":memory:\0" } do
  local ok, e = pcall(rille.step, "tx", { effect = "tx", db = db }, function(_, ctx)
    pcall(function() ctx.db:exec("VACUUM INTO '/tmp/rille-hostile-v.db'") end)
    pcall(function() ctx.db:exec("ATTACH '/tmp/rille-hostile-a.db' AS a") end)
    pcall(function() ctx.db:query("SELECT load_extension('libc.so.6')") end)
    pcall(function() ctx.db:query("SELECT length(zeroblob(900000000))") end)
    pcall(function() ctx.db:query("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c") end)
    return 1
  end)
  if ok then leaks[#leaks + 1] = db end
  print(db, ok, tostring(e))
end
if #leaks == 0 then error("no database was opened") end
return "ESCAPED " .. table.concat(leaks, ", ")
