// NVIDIA's data sheets: rates, memory, power, and a rough price, for ranking and estimates: real programs reach a
// fraction of these rates. Constant data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rille::provider {

struct GpuFacts {
  std::string_view model;         // as gpu_model() (gpus.hpp) returns it, plus the memory size if the model has several
  std::string_view socket;        // "SXM", "PCIe" or "NVL" if the model has several; else ""
  std::string_view architecture;  // GPU generation: "Ampere"
  int capability = 0;             // CUDA compute capability: 80 is sm_80
  double memory_bytes = 0;        // nominal: 80 GB are 80e9
  double bytes_per_s = 0;         // memory bandwidth
  // Dense rates in operations per second; a multiply-add counts as two. 0: not supported by the hardware. fp16, bf16
  // and fp8 with fp32 accumulation, as training needs.
  double fp32 = 0, tf32 = 0, fp16 = 0, bf16 = 0, fp8 = 0, int8 = 0;
  double nvlink_bytes_per_s = 0;  // sum of both directions; 0: no NVLink
  double power_w = 0;
  int year = 0;  // year of release
  // Rough price of one GPU in 2025; of a second-hand GPU if the model is no longer made. 0: not sold separately.
  double rough_price_dollars = 0;
  std::string_view source;  // the document with the rates
  bool confirmed = true;    // false: the rates are from the press or scaled from another GPU's
};

// Every known GPU; variants of one model are adjacent, the most common one first.
std::span<const GpuFacts> gpu_facts();

// Finds a model by any spelling: "NVIDIA A100-SXM4-80GB", "A100", "4090". For a model with several memory sizes or
// sockets memory_bytes (0: unknown) and the name decide, else the most common one is returned. nullptr: the table has
// no such model; a variant (Ti, Super, Laptop) or a MIG slice does not match its base model.
const GpuFacts* gpu_facts(std::string_view model, std::int64_t memory_bytes = 0);

// "A100 80GB PCIe": a name that gpu_facts() finds again.
std::string gpu_name(const GpuFacts& facts);

// The rate of a precision by its name: "bf16". 0: not supported, or not a precision.
double rate_of(const GpuFacts& facts, std::string_view precision);

}  // namespace rille::provider
