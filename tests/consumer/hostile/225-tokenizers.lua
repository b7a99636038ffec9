-- tokenizers whose files are short and whose vocabularies, texts and patterns are not
-- expect: timeout
-- grants: {"read": ["rille.home"], "write": ["rille.home"]}
local rille = require "rille"
local function put(name, text)
  rille.step(name, function()
    local f = assert(io.open(rille.home .. "/" .. name, "wb"))
    f:write(text)
    f:close()
  end)
  return rille.home .. "/" .. name
end
local b64, lines = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", {}
for b = 0, 255 do
  local a, c = math.floor(b / 4) + 1, b % 4 * 16 + 1
  lines[b + 1] = b64:sub(a, a) .. b64:sub(c, c) .. "== " .. b
end
local bytes = table.concat(lines, "\n") .. "\n"
local sparse = put("sparse.tiktoken", bytes .. "QUFB 16777215\n")
local kept = {}
for i = 1, 20 do pcall(function() kept[i] = rille.data.tokenizer(sparse, { pattern = "gpt2" }) end) end
local vocab = { '" ":1', ('"%s":2'):format(("b"):rep(100000)) }
for c in ("!acdefgh"):gmatch "." do vocab[#vocab + 1] = ('"%s":%d'):format(c, #vocab + 1) end
local model = '{"model":{"type":"BPE","unk_token":"!","vocab":{' .. table.concat(vocab, ",") .. '},"merges":[]},'
local twice = '{"type":"Replace","pattern":{"String":"a"},"content":"aa"}'
local doubling = model .. '"normalizer":{"type":"Sequence","normalizers":[' .. (twice .. ","):rep(40) .. twice .. "]}}"
pcall(function() return rille.data.tokenizer(put("a.json", doubling)):encode("a") end)
local marks = model .. '"pre_tokenizer":{"type":"Metaspace","replacement":"' .. ("m"):rep(100000) .. '"}}'
pcall(function() return rille.data.tokenizer(put("b.json", marks)):encode((" "):rep(1e6)) end)
local strip = model .. '"decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Strip","start":1e9,"stop":0}]}}'
local ids = {}
for i = 1, 200000 do ids[i] = 1 end
pcall(function() return rille.data.tokenizer(put("c.json", strip)):decode(ids) end)
for i = 1, 200000 do ids[i] = 2 end
pcall(function() return rille.data.tokenizer(rille.home .. "/c.json"):decode(ids) end)
local plain = put("v.tiktoken", bytes)
pcall(function() return rille.data.tokenizer(plain, { pattern = ".*" }):encode(("ab"):rep(4e6)) end)
while true do
  pcall(function() return rille.data.tokenizer(plain, { pattern = "x*y" }):encode(("x"):rep(2e6)) end)
  pcall(function() rille.data.tokenizer(plain, { pattern = "(a+)+$|.|\\n" }):encode((("a"):rep(19) .. "b"):rep(20000)) end)
end
