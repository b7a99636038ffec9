-- Rille's own readers on foreign files: data sets, tokens, arrays, tokenizers and tensors
-- expect: denied
local rille = require "rille"
local leaks, last = {}, nil
for _, p in ipairs { "/etc", "/etc/passwd", "/dev/zero", "/proc/self/mem", "../../..", "/proc/self/cwd/..", "/dev/fd/0", "/etc/passwd\0" } do
  for _, f in ipairs { "bytes", "tokens", "arrays", "tokenizer", "load_tensors" } do
    local ok, e = pcall(rille.data[f], p, { batch = 1, context = 8, pattern = "gpt2", validation = p, tokenizer = p })
    if ok then leaks[#leaks + 1] = f .. " " .. p else last = e end
  end
end
if #leaks > 0 then return "ESCAPED " .. table.concat(leaks, ", ") end
print(tostring(last))
rille.data.bytes("/etc/passwd")
