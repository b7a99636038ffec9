INSERT INTO runs(number,id,script,mode,parent,state,epoch,args,result,error,budget_micros,forked_from,seed,month_micros,tag,deadline_us,cancel_after,cancel_reason,created_us,updated_us,ended_us,host,pid) VALUES(1,'20261121-154302-tqddsy','/tmp/rille-golden-_8x1amp8/child.lua','durable','','running',1,'{}',NULL,NULL,NULL,'','',NULL,'',NULL,NULL,NULL,1795275782479917,1795275782479917,NULL,'vm',21446);
INSERT INTO runs(number,id,script,mode,parent,state,epoch,args,result,error,budget_micros,forked_from,seed,month_micros,tag,deadline_us,cancel_after,cancel_reason,created_us,updated_us,ended_us,host,pid) VALUES(2,'20261121-154302-tqddsy.child_of-b9e7b7','/tmp/rille-golden-_8x1amp8/child_of.lua','durable','20261121-154302-tqddsy','done',1,'{"n":4}','{"squared":16}',NULL,NULL,'','',NULL,'',NULL,NULL,NULL,1795275782521223,1795275782575586,1795275782575586,'vm',0);
INSERT INTO sources(run,module,sha256) VALUES('20261121-154302-tqddsy','child.lua','cc020f051cad6d39c80c27b26bc3950fa5aadf153e0fa350dfd7a0c269b55ec3');
INSERT INTO sources(run,module,sha256) VALUES('20261121-154302-tqddsy.child_of-b9e7b7','child_of.lua','b6e99bcca0191e0936c3e911245979683e21b89811e2c7590d4cc2c7c533344c');
INSERT INTO blobs(sha256,content) VALUES('cc020f051cad6d39c80c27b26bc3950fa5aadf153e0fa350dfd7a0c269b55ec3','-- A run that starts another one.
local rille = require "rille"
local function die() if not io.open(rille.home .. "/../../survive") then os.execute("sleep 0.05; kill -9 $PPID") end end
local given = rille.run("child_of.lua", { n = 4 })
rille.step("die", function() die() end)
return { given, rille.step("after", function() return "live" end) }
');
INSERT INTO blobs(sha256,content) VALUES('b6e99bcca0191e0936c3e911245979683e21b89811e2c7590d4cc2c7c533344c','local rille = require "rille"
local args = rille.args { n = 0 }
return { squared = rille.step("square", function() return args.n * args.n end) }
');
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967297,'main',0,'run','child_of.lua',1,'4fddc60fa7cf908cbac8945b70ea7152',1,'child.lua:4',1795275782521016,1795275782577588,'{"squared":16}',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(8589934593,'main',0,'step','square',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'child_of.lua:3',1795275782548244,1795275782548260,'16',NULL,NULL);
