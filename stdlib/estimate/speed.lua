-- Internal: how fast a GPU runs a model. Real programs reach only a part of the dense rate: image networks are
-- limited by memory bandwidth, transformers by how well their matrix products fill the GPU.
local speed = {}

-- For a precision that a GPU does not support: the precision used instead.
local instead = { int4 = "fp16", int8 = "fp16", fp8 = "bf16", bf16 = "fp16", fp16 = "tf32", tf32 = "fp32" }

-- Returns the GPU's dense rate (FLOP per second) for a precision, and the precision actually used.
function speed.rate(facts, precision)
  while precision and not facts.flops[precision] do precision = instead[precision] end
  return precision and facts.flops[precision], precision
end

-- The part of the dense rate that transformers reach in fp16 and bf16. Volta and Ampere: NVIDIA's BERT-large (0.47 to
-- 0.75), llm.c's GPT-2 (0.54 to 0.65) and Meta's Llama 2 (0.43 to 0.46) on A100. Hopper: llm.c's GPT-2 1.5B on H100,
-- 0.51; other reports are lower. Turing, Ada and Blackwell: guesses.
local transformer = { Pascal = 0.4, Volta = 0.5, Turing = 0.35, Ampere = 0.5, Ada = 0.45, Hopper = 0.4,
  Blackwell = 0.35 }
local by_precision = { fp32 = 0.75, tf32 = 0.5 }

-- FLOP per byte that image networks move, from NVIDIA's ResNet-50: in training 2470 images/s on A100 and 1200 on
-- V100, in inference 3249 on V100 and 1190 on T4 in fp16, 415 on T4 in fp32. They reach at most 0.55 of the dense
-- rate.
local per_byte = { fp32 = 12, tf32 = 12, fp16 = 30, bf16 = 30, fp8 = 60, int8 = 60 }

-- Returns the fraction of the dense rate `rate` that the model reaches on this GPU.
function speed.utilization(model, facts, precision, rate, mode, assumed)
  if assumed.utilization then return assumed.utilization end
  if model.kind == "image" then return math.min(0.55, per_byte[precision] * facts.bytes_per_s / rate) end
  local part = by_precision[precision] or transformer[facts.architecture] or 0.4
  if precision == "fp8" or precision == "int8" then part = part * 0.75 end
  return mode == "inference" and part * 0.8 or part
end

-- The bytes that each of n GPUs or machines sends per step: fp32 gradients, summed around a ring; plus the weights if
-- the model is sharded.
local function exchanged(model, n, sharded) return 2 * (n - 1) / n * model.params * (sharded and 6 or 4) end

-- Returns the efficiency of GPUs that work together, and the bytes exchanged between machines per step. The
-- efficiency has constant factors and a part for the time that a step waits for communication; half of the
-- communication overlaps with computing.
function speed.efficiency(model, facts, machines, gpus_each, sharded, step_seconds, assumed)
  local part, waits = sharded and assumed.sharded_efficiency or 1, 0
  if gpus_each > 1 then
    part = part * (assumed.node_efficiency or (model.kind == "image" and 0.86 or 0.95))
    if facts.nvlink_bytes_per_s == 0 then
      waits = exchanged(model, gpus_each, sharded) / (assumed.pcie_gb_per_s * 1e9)
    end
  end
  local bytes, bytes_per_s = 0, 0
  if machines > 1 then
    part = part * assumed.cluster_efficiency
    local gbps = assumed.network_gbps or (gpus_each >= 8 and facts.nvlink_bytes_per_s > 0 and 3200 or 25)
    bytes, bytes_per_s = exchanged(model, machines, sharded), gbps / 8 * 1e9
    waits = waits + bytes / bytes_per_s
  end
  local waited = math.max(0, waits - step_seconds / 2)
  return part * step_seconds / (step_seconds + waited), bytes
end

return speed
