-- statements that never end, each caught, also by a view and a trigger that stand for the table of the steps' results
-- expect: timeout
-- grants: {"read": ["rille.home"], "write": ["rille.home"]}
local rille = require "rille"
local count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS n FROM c WHERE x < 0"
local function tx(name, body)
  pcall(rille.step, name, { effect = "tx", db = rille.home .. "/x.db", retry = 1 }, function(_, ctx) return body(ctx.db) end)
end
tx("trigger", function(db)
  db:exec("CREATE TABLE t(n); CREATE TRIGGER e AFTER INSERT ON rille_steps BEGIN INSERT INTO t " .. count .. "; END")
end)
tx("view", function(db)
  db:exec("DROP TABLE rille_steps; CREATE VIEW rille_steps AS SELECT n AS result, 1 AS token FROM (" .. count .. ")")
end)
tx("stands", function() end)
for i = 1, 100 do
  tx("count " .. i, function(db)
    pcall(db.query, db, count)
    pcall(db.exec, db, "CREATE TABLE y AS " .. count)
  end)
end
