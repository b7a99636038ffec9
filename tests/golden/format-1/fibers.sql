INSERT INTO runs(number,id,script,mode,parent,state,epoch,args,result,error,budget_micros,forked_from,seed,month_micros,tag,deadline_us,cancel_after,cancel_reason,created_us,updated_us,ended_us,host,pid) VALUES(1,'20261121-174137-fckvcm','/tmp/rille-golden-w9qh3jxa/fibers.lua','durable','','running',1,'{}',NULL,NULL,NULL,'','',NULL,'',NULL,NULL,NULL,1795282897668409,1795282897668409,NULL,'vm',19688);
INSERT INTO sources(run,module,sha256) VALUES('20261121-174137-fckvcm','fibers.lua','e22a8c2fc89ab605fc1fcd5628ec54075451ddc35038d40082df5ddf980221e1');
INSERT INTO blobs(sha256,content) VALUES('e22a8c2fc89ab605fc1fcd5628ec54075451ddc35038d40082df5ddf980221e1','-- Fibers in all forms, scopes and defers, messages; killed with several fibers under way.
local rille = require "rille"
local function die() if not io.open(rille.home .. "/../../survive") then os.execute("sleep 0.05; kill -9 $PPID") end end
local order = {}
local function work(name, value)
  local v = rille.step(name, function() return value end)
  order[#order + 1] = name
  return v
end
local doubled = rille.map("items", { 1, 2, 3, 4 }, { limit = 2, key = function(x) return "k" .. x end }, function(x)
  return work("double" .. x, 2 * x)
end)
local winner, key = rille.race {
  quick = function() return work("quick", "q") end,
  slow = function() rille.sleep("long", "1h") end,
}
local both = rille.all { a = function() return work("a", 1) end, b = function() return work("b", 2) end }
local handle = rille.spawn("background", function() return work("behind", "b") end)
rille.scope("inner", function()
  rille.defer(function() work("deferred", 0) end)
  work("inside", 0)
end)
local message = rille.signal("go", { timeout = "10s" })
local caught = select(2, pcall(rille.scope, function()
  rille.spawn("bad", function() work("before", 0) error("broken child") end)
  rille.sleep("never", "1h")
end))
local ends = {}
rille.map("last", { 1, 2 }, function(i)
  ends[i] = work("first" .. i, i)
  if i == 1 then rille.step("die", function() die() end) end
  ends[i] = ends[i] + work("second" .. i, i)
end)
local why = tostring(caught.message):match("broken child")
return { doubled, winner, key, both, handle:wait(), message, why, ends, #order }
');
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967297,'main/items[k1]#1',0,'step','double1',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897670850,1795282897670858,'2',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967298,'main/items[k2]#1',0,'step','double2',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897670970,1795282897670971,'4',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967299,'main/items[k3]#1',0,'step','double3',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897671503,1795282897671504,'6',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967300,'main/items[k4]#1',0,'step','double4',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897671523,1795282897671523,'8',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967301,'main/race.quick#1',0,'step','quick',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897672880,1795282897672888,'"q"',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967302,'main',0,'race','race winner',1,'d4735e3a265e16eee03f59718b9b5d03',1,'fibers.lua:13',1795282897672866,1795282897673483,'0',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967303,'main/all.a#1',0,'step','a',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897673976,1795282897673978,'1',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967304,'main/all.b#1',0,'step','b',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897674037,1795282897674038,'2',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967305,'main',1,'step','inside',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897674551,1795282897674552,'0',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967306,'main/background#1',0,'step','behind',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897674566,1795282897674568,'"b"',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967307,'main',2,'step','deferred',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897674902,1795282897674905,'0',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967308,'main',3,'signal','go',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:23',1795282897675404,1795282897875826,'{"answer":42}',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967309,'main/bad#1',0,'step','before',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897876626,1795282897876630,'0',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967310,'main/last[1]#1',0,'step','first1',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897877321,1795282897877323,'1',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967311,'main/last[2]#1',0,'step','first2',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'fibers.lua:6',1795282897877416,1795282897877417,'2',NULL,NULL);
INSERT INTO begun(run,fiber,pos,kind,name,occurrence,args_sha256,attempt,next_us,source,started_us,progress) VALUES(1,'main',4,'sleep','never',1,'c48664a448d8a63d99349ce31b40aca5',1,1795286497876578,'fibers.lua:26',1795282897876572,NULL);
INSERT INTO begun(run,fiber,pos,kind,name,occurrence,args_sha256,attempt,next_us,source,started_us,progress) VALUES(1,'main/race.slow#1',0,'sleep','long',1,'c48664a448d8a63d99349ce31b40aca5',1,1795286497672979,'fibers.lua:15',1795282897672978,NULL);
INSERT INTO inbox(run,name,message_id,payload,at_us,taken_by) VALUES('20261121-174137-fckvcm','go','f1ffd9b7fb515ade','{"answer":42}',1795282897701184,'main/go#1');
