-- a graph of activations that grows with each operation and is never let go
-- expect: memory or timeout
local rille = require "rille"
local dev = rille.device("cpu")
local x = dev:ones { 1000, 100, requires_grad = true }
local y = x
for i = 1, 1000000 do y = (y * y):tanh():exp() y:narrow(1, 1, 1):sum():item() end
