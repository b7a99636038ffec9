-- single functions that take long on long texts, which nothing interrupts
-- expect: any
-- grants: {"read": ["rille.home"], "write": ["rille.home"]}
local rille = require "rille"
local texts = "WITH t(a) AS (SELECT replace(hex(zeroblob(60000)), '0', 'aa')) SELECT %s AS n FROM t"
local each = { "instr(a, substr(a, 1, 120000) || 'b')", "replace(a, substr(a, 1, 120000) || 'b', '')",
  "length(trim(a, replace(substr(a, 1, 120000), 'a', 'b') || 'a'))", "a LIKE '%" .. ("a"):rep(40) .. "b'",
  "a GLOB '*" .. ("a"):rep(40) .. "b*'", "length(randomblob(262144))", "length(hex(a))", "length(json_quote(a))" }
for _, f in ipairs(each) do
  for _, times in ipairs { 1, 99 } do
    pcall(rille.step, f .. times, { effect = "tx", db = rille.home .. "/x.db", retry = 1 }, function(_, ctx)
      return ctx.db:query(texts:format(f .. (" + " .. f):rep(times - 1)))[1]
    end)
  end
end
