-- deeply nested source of all kinds, so that the parser overflows its stack
-- expect: any
local n = 200000
local texts = {
  "return " .. ("("):rep(n) .. "1" .. (")"):rep(n),
  "return " .. ("-"):rep(n) .. "1",
  "return " .. ("{"):rep(n) .. ("}"):rep(n),
  ("do "):rep(n) .. ("end "):rep(n),
  ("function f() "):rep(n) .. ("end "):rep(n),
  "return " .. ("'a'.."):rep(n) .. "'b'",
  "return " .. ("not "):rep(n) .. "1",
  "return " .. ("1^"):rep(n) .. "1",
  "return a" .. ("[a"):rep(n) .. ("]"):rep(n),
  "return [" .. ("="):rep(n) .. "[x]" .. ("="):rep(n) .. "]",
  "local x = 1 " .. ("if x then elseif x then "):rep(1000) .. ("end "):rep(1000),
}
for i = 1, #texts do print(i, (load or loadstring)(texts[i]) ~= nil) end
