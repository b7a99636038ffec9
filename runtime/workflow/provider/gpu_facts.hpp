// What NVIDIA says of its GPUs: rates, memory, power, and a rough price. A table to rank and to estimate with, not to
// measure by: real programs reach a part of these rates. Constant data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rille::provider {

struct GpuFacts {
  std::string_view model;         // as gpu_model() of gpus.hpp gives it; with the memory where there are several
  std::string_view socket;        // "SXM", "PCIe" or "NVL" where the same model comes in several; else ""
  std::string_view architecture;  // "Ampere"
  int capability = 0;             // 80 is sm_80
  double memory_bytes = 0;        // as sold: 80 GB are 80e9
  double bytes_per_s = 0;         // of its memory
  // Dense rates, in operations per second, a multiply-add being two. 0: the hardware has none. fp16, bf16 and fp8 are
  // those with sums in fp32, as training needs them.
  double fp32 = 0, tf32 = 0, fp16 = 0, bf16 = 0, fp8 = 0, int8 = 0;
  double nvlink_bytes_per_s = 0;  // both directions together; 0: it has none
  double power_w = 0;
  int year = 0;  // when it could first be had
  // Of one, roughly, as of 2025: new, or used where it is no longer made. 0: it is not sold alone.
  double rough_price_dollars = 0;
  std::string_view source;  // the document that has the rates
  bool confirmed = true;    // false: from the press or by proportion, and not read in the maker's own document
};

// Every GPU that is known, those of one model next to each other, the usual one first.
std::span<const GpuFacts> gpu_facts();

// The facts of a model by its words, in whatever way it is written: "NVIDIA A100-SXM4-80GB", "A100", "4090". Where it
// comes with several memories or sockets, memory_bytes (0: unknown) and the name decide, else it is the usual one.
// nullptr: it is not in the table, is a variant that is not (Ti, Super, Laptop), or is a part of one (a MIG slice).
const GpuFacts* gpu_facts(std::string_view model, std::int64_t memory_bytes = 0);

// "A100 80GB PCIe": a name that gpu_facts() finds again.
std::string gpu_name(const GpuFacts& facts);

// The rate of a precision by its name: "bf16". 0: the GPU has none, or it is no name of a precision.
double rate_of(const GpuFacts& facts, std::string_view precision);

}  // namespace rille::provider
