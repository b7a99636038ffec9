-- Which grants each public function may need, depending on its arguments: docs/manual/grants.md says when. A function
-- of the reference that is in neither list fails the test docs.grants: look whether it reads, writes, starts, connects
-- or compiles anything, and if so, let its binding ask bindings/host/grants.hpp and add a call to grants_test.lua.
local rows = {}

rows.needs = {
  ["Cluster:each"] = "process",
  ["Cluster:map"] = "process",
  ["Cluster:resize"] = "providers process",
  ["Communicator:split"] = "network",
  ["Device:elementwise"] = "kernels",
  ["Device:kernel"] = "kernels read",
  ["Device:kernel_file"] = "kernels read",
  ["Device:reduction"] = "kernels",
  ["Instance:call"] = "env network process providers",
  ["Instance:exec"] = "env process",
  ["Instance:get"] = "write process",
  ["Instance:replace"] = "providers process",
  ["Instance:stage"] = "read network providers process",
  ["Kernel:cubin"] = "kernels",
  ["Kernel:ptx"] = "kernels",
  ["Kernel:sass"] = "kernels",
  ["Store:delete"] = "network providers",
  ["Store:exists"] = "network providers",
  ["Store:get"] = "network providers write",
  ["Store:list"] = "network providers",
  ["Store:put"] = "network providers read",
  ["Volume:delete"] = "providers",
  ["rille.autoscale.run"] = "providers process",
  ["rille.budget"] = "network env",
  ["rille.checkpoint.begin"] = "write",
  ["rille.checkpoint.exists"] = "read",
  ["rille.checkpoint.load"] = "read",
  ["rille.checkpoint.save"] = "write",
  ["rille.cluster"] = "providers process",
  ["rille.communicator"] = "network",
  ["rille.csv.read"] = "read",
  ["rille.csv.write"] = "write",
  ["rille.data.arrays"] = "read",
  ["rille.data.build"] = "read write",
  ["rille.data.bytes"] = "read",
  ["rille.data.images"] = "read",
  ["rille.data.load_tensors"] = "read",
  ["rille.data.save_tensors"] = "write",
  ["rille.data.tokenizer"] = "read",
  ["rille.data.tokens"] = "read",
  ["rille.estimate"] = "providers",
  ["rille.nn.bert"] = "read",
  ["rille.nn.gpt2"] = "read",
  ["rille.nn.llama"] = "read",
  ["rille.nn.resnet"] = "read",
  ["rille.offers"] = "providers",
  ["rille.price_history"] = "providers",
  ["rille.quotas"] = "providers",
  ["rille.read"] = "read",
  ["rille.rent"] = "providers process",
  ["rille.run"] = "read",
  ["rille.step"] = "read write",
  ["rille.train.run"] = "read write network providers",
  ["rille.try_rent"] = "providers process",
  ["rille.write"] = "write",
  ["rille.volume"] = "providers process",
  -- of Lua itself
  ["dofile"] = "read",
  ["io.close"] = "write",
  ["io.flush"] = "write",
  ["io.input"] = "read",
  ["io.lines"] = "read",
  ["io.open"] = "read write",
  ["io.output"] = "write",
  ["io.popen"] = "process",
  ["io.read"] = "read",
  ["io.stderr"] = "write",
  ["io.stdin"] = "read",
  ["io.stdout"] = "write",
  ["io.tmpfile"] = "write",
  ["io.write"] = "write",
  ["loadfile"] = "read",
  ["os.execute"] = "process",
  ["os.getenv"] = "env",
  ["os.remove"] = "write",
  ["os.rename"] = "write",
  ["os.tmpname"] = "write",
  ["require"] = "kernels",
}

-- Nothing: they compute, or change only what the run has already.
rows.none = [[
Buffer:tensor Buffer:text
Arrays:info Arrays:load_state Arrays:next Arrays:state Arrays:validation Arrays:validation_batches
Bytes:bigram Bytes:info Bytes:load_state Bytes:next Bytes:state Bytes:validation Bytes:validation_batches
Cluster:boxes Cluster:release
Communicator:all_gather Communicator:all_reduce Communicator:average_gradients Communicator:barrier
Communicator:broadcast Communicator:close Communicator:recv Communicator:reduce_scatter Communicator:send
Communicator:sendrecv
Database:exec Database:query
Device:arange Device:check_numbers Device:eye Device:from_bytes Device:full Device:limit_memory Device:linspace
Device:memory Device:ones Device:profile Device:rand Device:randint Device:randn Device:random_state Device:randperm
Device:record Device:release_cache Device:reset_peak Device:rope_angles Device:seed Device:set_random_state
Device:stream Device:synchronize Device:telemetry Device:tensor Device:wait Device:zeros
Ema:apply Ema:load_state Ema:state Ema:swap Ema:update
Event:done Event:elapsed Event:wait
Fiber:cancel Fiber:done Fiber:wait
Images:info Images:load_state Images:next Images:state Images:validation Images:validation_batches
Instance:describe Instance:detach Instance:preempting Instance:release Instance:resize Instance:telemetry
Kernel:bind Kernel:launch Kernel:suggest_block
Optimizer:load_state Optimizer:scaled Optimizer:set_lr Optimizer:state Optimizer:step Optimizer:unscale
Optimizer:zero_grad
Step:heartbeat
Stream:record Stream:release Stream:synchronize Stream:wait
Tensor:abs Tensor:acos Tensor:adaptive_avg_pool1d Tensor:adaptive_avg_pool2d Tensor:adaptive_max_pool1d
Tensor:adaptive_max_pool2d Tensor:add Tensor:add_ Tensor:all Tensor:any Tensor:argmax Tensor:argmin Tensor:argsort
Tensor:asin Tensor:atan Tensor:atan2 Tensor:avg_pool1d Tensor:avg_pool2d Tensor:backward Tensor:batch_norm
Tensor:binary_cross_entropy_with_logits Tensor:bitwise_and Tensor:bitwise_not Tensor:bitwise_or Tensor:bitwise_xor
Tensor:bytes Tensor:cat Tensor:ceil Tensor:chunk Tensor:clamp Tensor:clone Tensor:contiguous Tensor:conv1d
Tensor:conv2d Tensor:conv_transpose2d Tensor:copy_ Tensor:cos Tensor:cosh Tensor:cross_entropy Tensor:cumsum
Tensor:detach Tensor:dim Tensor:div Tensor:div_ Tensor:dropout Tensor:einsum Tensor:elu Tensor:embedding Tensor:eq
Tensor:erf Tensor:exp Tensor:exp2 Tensor:expand Tensor:expm1 Tensor:fft Tensor:fft2 Tensor:fill_ Tensor:flatten
Tensor:flip Tensor:floor Tensor:floor_divide Tensor:free Tensor:full_like Tensor:gather Tensor:ge Tensor:gelu
Tensor:group_norm Tensor:gt Tensor:hardsigmoid Tensor:hardswish Tensor:ifft Tensor:ifft2 Tensor:index_add
Tensor:index_copy Tensor:index_select Tensor:interpolate Tensor:irfft Tensor:irfft2 Tensor:isfinite Tensor:isinf
Tensor:isnan Tensor:item Tensor:l1_loss Tensor:layer_norm Tensor:le Tensor:leaky_relu Tensor:linear Tensor:log
Tensor:log10 Tensor:log1p Tensor:log2 Tensor:log_softmax Tensor:logical_and Tensor:logical_not Tensor:logical_or
Tensor:logical_xor Tensor:logsumexp Tensor:lt Tensor:masked_fill Tensor:masked_select Tensor:matmul Tensor:max
Tensor:max_pool1d Tensor:max_pool2d Tensor:maximum Tensor:mean Tensor:min Tensor:minimum Tensor:mse_loss Tensor:mul
Tensor:mul_ Tensor:multinomial Tensor:narrow Tensor:ne Tensor:neg Tensor:nll_loss Tensor:nonzero Tensor:norm
Tensor:numel Tensor:one_hot Tensor:ones_like Tensor:pad Tensor:permute Tensor:pow Tensor:prod Tensor:rand_like
Tensor:randn_like Tensor:reciprocal Tensor:relu Tensor:remainder Tensor:repeat_interleave Tensor:requires_grad_
Tensor:reshape Tensor:rfft Tensor:rfft2 Tensor:rms_norm Tensor:roll Tensor:rope Tensor:round Tensor:rsqrt
Tensor:scaled_dot_product_attention Tensor:scatter Tensor:scatter_add Tensor:select Tensor:set_grad Tensor:shape
Tensor:sigmoid Tensor:sign Tensor:silu Tensor:sin Tensor:sinh Tensor:size Tensor:smooth_l1_loss Tensor:softmax
Tensor:softplus Tensor:sort Tensor:split Tensor:sqrt Tensor:square Tensor:squeeze Tensor:stack Tensor:std Tensor:sub
Tensor:sub_ Tensor:sum Tensor:tan Tensor:tanh Tensor:text Tensor:tile Tensor:to Tensor:topk Tensor:totable
Tensor:transpose Tensor:tril Tensor:triu Tensor:trunc Tensor:unsqueeze Tensor:var Tensor:view Tensor:where
Tensor:zero_ Tensor:zeros_like
Volume:describe
Tokenizer:decode Tokenizer:encode Tokenizer:id_of
rille.all rille.args rille.autocast rille.compile rille.custom_grad rille.defer rille.device rille.devices
rille.errdefer rille.error rille.gpus rille.leave rille.log rille.metric rille.map rille.measure rille.no_grad rille.now
rille.patched rille.pool rille.preempting rille.print rille.progress rille.race rille.scope rille.signal rille.sleep
rille.spawn rille.store
rille.checkpoint.done rille.checkpoint.wait
rille.csv.parse rille.inspect rille.json.decode rille.json.encode
rille.nn.attention rille.nn.batch_norm rille.nn.class rille.nn.conv1d rille.nn.conv2d rille.nn.conv_transpose2d
rille.nn.dropout rille.nn.embedding rille.nn.gpt rille.nn.group_norm rille.nn.layer_norm rille.nn.linear
rille.nn.mlp rille.nn.rms_norm rille.nn.sequential rille.nn.with_seed
rille.optim.adam rille.optim.adamw rille.optim.clip_grad_norm rille.optim.clip_grad_value rille.optim.constant
rille.optim.cosine rille.optim.ema rille.optim.groups rille.optim.linear rille.optim.lion rille.optim.muon
rille.optim.one_cycle rille.optim.sgd rille.optim.step_decay rille.optim.wsd
rille.gradcheck rille.plot
rille.repl.builtins.describe rille.repl.builtins.names rille.repl.commands.new rille.repl.complete.new
rille.repl.habits.of_name rille.repl.habits.of_syntax rille.repl.keep.new rille.repl.main
rille.repl.show.fitting rille.repl.show.result rille.repl.show.whole
rille.train.validation
io.type os.clock os.date os.difftime os.time
]]

return rows
