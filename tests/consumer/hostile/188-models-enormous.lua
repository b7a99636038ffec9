-- models of gigabytes, by published sizes and by options, initialised with random numbers
-- expect: error
local rille = require "rille"
print(pcall(rille.nn.gpt2, { size = "1558M" }))
print(pcall(rille.nn.llama, { layers = 80, heads = 64, width = 8192, context = 4096, vocab = 128256 }))
print(pcall(rille.nn.gpt, { layers = 2 ^ 53, heads = 1, width = 8, context = 8 }))
print(pcall(rille.nn.gpt, { layers = 1, heads = 1, width = 8, context = 2 ^ 40 }))
print(pcall(rille.nn.mlp, setmetatable({}, { __len = function() return 1e9 end, __index = function() return 4096 end })))
rille.nn.resnet { depth = 152, width = 1024, classes = 1000000 }
error("it was built")
