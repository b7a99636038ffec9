-- writes in place to expanded, overlapping and self-referring views while they are read
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local t = dev:arange { 100, dtype = "f32" }:view(10, 10)
for i = 1, 200 do
  pcall(function() t:copy_(t:transpose()) end)
  pcall(function() t:narrow(1, 2, 9):add_(t:narrow(1, 1, 9)) end)
  pcall(function() t[{ {}, { 1, 9 } }] = t[{ {}, { 2, 10 } }] end)
  pcall(function() t:narrow(1, 1, 1):expand(10, 10):fill_(0) end)
  pcall(function() t:select(1, 1):mul_(t:select(1, 1):expand(5, 10)) end)
  pcall(function() t[{ { 10, 1, -1 } }] = t end)
  pcall(function() t[{}] = dev:ones { 1 }:expand(10, 10) end)
  pcall(function() t:view(100):copy_(t:view(100):flip():to("f64")) end)
end
print(t:sum():item())
