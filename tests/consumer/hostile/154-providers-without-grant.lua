-- asks providers for offers, prices, quotas and estimates, with huge and odd queries
-- expect: any
local rille = require "rille"
local t = { "A100" }
for i = 1, 20 do t = { t, t } end
for _, f in ipairs { "offers", "price_history", "quotas", "estimate" } do
  for _, q in ipairs { {}, { provider = "aws" }, { provider = "local" }, { providers = { "ssh", "remote" } }, { gpu = t }, { region = ("r"):rep(1000000) },
    { since = "999999999d" }, { timeout = "0s" }, { timeout = "1000d" }, { model = "gpt2", tokens = "10B", offers = {} } } do
    print(f, pcall(rille[f], q))
  end
end
