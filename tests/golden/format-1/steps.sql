INSERT INTO runs(number,id,script,mode,parent,state,epoch,args,result,error,budget_micros,forked_from,seed,month_micros,tag,deadline_us,cancel_after,cancel_reason,created_us,updated_us,ended_us,host,pid) VALUES(1,'20261121-174137-mmpnvg','/tmp/rille-golden-8kxrzgo_/steps.lua','durable','','running',1,'{"n":"5"}',NULL,NULL,NULL,'','',NULL,'',NULL,NULL,NULL,1795282897445772,1795282897445772,NULL,'vm',19676);
INSERT INTO sources(run,module,sha256) VALUES('20261121-174137-mmpnvg','steps.lua','832d92828991bd0b1cbb0f827925c04f4bee8659396b5dd41f040bd44bc1d2f9');
INSERT INTO blobs(sha256,content) VALUES('832d92828991bd0b1cbb0f827925c04f4bee8659396b5dd41f040bd44bc1d2f9','-- Steps, their failures and retries, the clock, sleeps, randomness.
local rille = require "rille"
local function die() if not io.open(rille.home .. "/../../survive") then os.execute("sleep 0.05; kill -9 $PPID") end end
local args = rille.args { n = 3 }
local drawn = math.random(1, 1e9)
local list = rille.step("list", { args = drawn }, function()
  return { 1, 2.5, "three", { deep = true }, [5] = 0 / 0 }
end)
local ok, err = pcall(rille.step, "fails", function()
  rille.error { kind = "quota", message = "no more", hint = "wait" }
end)
local tried = rille.step("tried", { retry = { attempts = 3, initial = "1ms" } }, function(attempt)
  if attempt < 3 then error("not yet") end
  return attempt
end)
local at = rille.now()
rille.sleep("nap", "1ms")
local same = rille.step("same", function() return 1 end) + rille.step("same", function() return 2 end)
local new = rille.patched("marker")
rille.step("die", function() die() end)
local last = rille.step("last", function() return "live" end)
return { args.n, list[3], list[4].deep, ok, err.kind, err.message, err.hint, tried, at < rille.now(), same, new, last }
');
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967297,'main',0,'step','list',1,'3f46720f14bc7fee03f88454b82f2803',1,'steps.lua:6',1795282897448804,1795282897448853,'[1,2.5,"three",{"deep":true},{"$num":"nan"}]',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967298,'main',1,'step','fails',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'steps.lua:9',1795282897449534,1795282897449631,NULL,'{"hint":"wait","kind":"quota","message":"no more","traceback":"  steps.lua:10: in the function at line 9\n  steps.lua:9: in the main chunk"}',NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967299,'main',2,'step','tried',1,'74234e98afe7498fb5daf1f36ac2d78a',3,'steps.lua:12',1795282897450031,1795282897452647,'3',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967300,'main',3,'now','now',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'steps.lua:16',1795282897453063,1795282897453066,'1795282897.453064',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967301,'main',4,'sleep','nap',1,'6b86b273ff34fce19d6b804eff5a3f57',1,'steps.lua:17',1795282897453436,1795282897454528,'null',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967302,'main',5,'step','same',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'steps.lua:18',1795282897454937,1795282897454941,'1',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967303,'main',6,'step','same',2,'74234e98afe7498fb5daf1f36ac2d78a',1,'steps.lua:18',1795282897455358,1795282897455360,'2',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967304,'main',7,'patched','marker',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'steps.lua:19',1795282897455773,1795282897455775,'true',NULL,NULL);
