INSERT INTO runs(number,id,script,mode,parent,state,epoch,args,result,error,budget_micros,forked_from,seed,month_micros,tag,deadline_us,cancel_after,cancel_reason,created_us,updated_us,ended_us,host,pid) VALUES(1,'20261121-174138-nctdwv','/tmp/rille-golden-z0pfi_97/child.lua','durable','','running',1,'{}',NULL,NULL,NULL,'','',NULL,'',NULL,NULL,NULL,1795282898010801,1795282898010801,NULL,'vm',19706);
INSERT INTO runs(number,id,script,mode,parent,state,epoch,args,result,error,budget_micros,forked_from,seed,month_micros,tag,deadline_us,cancel_after,cancel_reason,created_us,updated_us,ended_us,host,pid) VALUES(2,'20261121-174138-nctdwv.child_of-2d8dc8','/tmp/rille-golden-z0pfi_97/child_of.lua','durable','20261121-174138-nctdwv','done',1,'{"n":4}','{"squared":16}',NULL,NULL,'','',NULL,'',NULL,NULL,NULL,1795282898013709,1795282898016252,1795282898016252,'vm',0);
INSERT INTO sources(run,module,sha256) VALUES('20261121-174138-nctdwv','child.lua','cc020f051cad6d39c80c27b26bc3950fa5aadf153e0fa350dfd7a0c269b55ec3');
INSERT INTO sources(run,module,sha256) VALUES('20261121-174138-nctdwv.child_of-2d8dc8','child_of.lua','b6e99bcca0191e0936c3e911245979683e21b89811e2c7590d4cc2c7c533344c');
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
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(4294967297,'main',0,'run','child_of.lua',1,'4fddc60fa7cf908cbac8945b70ea7152',1,'child.lua:4',1795282898013348,1795282898016809,'{"squared":16}',NULL,NULL);
INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,error,blob) VALUES(8589934593,'main',0,'step','square',1,'74234e98afe7498fb5daf1f36ac2d78a',1,'child_of.lua:3',1795282898015578,1795282898015591,'16',NULL,NULL);
