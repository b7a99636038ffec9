-- has the host send web requests and e-mail, or read variables, by the address of a budget's alert
-- expect: denied
local rille = require "rille"
for _, u in ipairs { "http://127.0.0.1:1/x", "https://example.org/", "mailto:me@example.org", "env:HOME", "env:AWS_SECRET_ACCESS_KEY",
  "file:///etc/passwd", "gopher://127.0.0.1:1/_x", "http://127.0.0.1:1/\r\nX: y", "HTTP://EXAMPLE.ORG", " https://example.org", "ftp://x" } do
  local ok, e = pcall(rille.budget, { limit = 0, alert = 0, alert_url = u })
  if ok then return "ESCAPED " .. u end
  print(u, tostring(e))
end
rille.budget { limit = 0, alert = 0, alert_url = "https://example.org/hook" }
