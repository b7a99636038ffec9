-- bit operations and math with NaN, infinities and shifts beyond the width; randomness with empty ranges
-- expect: any
for _, v in ipairs { 0 / 0, 1 / 0, -1 / 0, 2 ^ 63, -2 ^ 63, 1e308, -0.0, 2 ^ 31 } do
  for _, f in ipairs { "tobit", "bnot", "bswap", "tohex" } do pcall(bit[f], v, v) end
  for _, f in ipairs { "lshift", "rshift", "arshift", "rol", "ror" } do pcall(bit[f], v, v) end
  print(pcall(math.random, v), pcall(math.random, v, v), pcall(math.random, -v, v), pcall(math.randomseed, v), pcall(math.fmod, v, 0))
  print(pcall(math.ldexp, v, v), pcall(math.frexp, v), pcall(string.rep, "x", -v), pcall(string.char, v))
end
print(pcall(bit.tohex, 1, -2 ^ 31), pcall(bit.tohex, 1, 2 ^ 31 - 1))
