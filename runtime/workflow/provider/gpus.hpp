// Names of GPU models, which drivers, clouds and people spell differently: "NVIDIA A100-SXM4-80GB", "nvidia-a100-80gb",
// "A100 80GB". Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rille::provider {

// The model as Rille shows it, without vendor, product line and socket: "A100 80GB", "RTX 4090", "H100".
std::string gpu_model(std::string_view name);

// "A100-80GB" -> "A100"; a name without a memory size is unchanged.
std::string gpu_without_memory(std::string_view asked);

// Whether adding the word to a GPU name makes it mean another GPU, or a part of a GPU: "Ti", "Super", "MIG". Case is
// ignored.
bool makes_another_gpu(std::string_view word);

// Whether `asked` matches this model. Every word of it must be one of the model's words, in any case and order; the
// memory size counts as a word: "A100" and "A100-80GB" match an "A100" with 80 GB, "A10" does not. Words for which
// makes_another_gpu() is true must be in `asked` too: "A100" does not match a MIG slice of an A100, nor "RTX 4070" an
// "RTX 4070 Ti".
bool gpu_matches(std::string_view model, std::int64_t memory_bytes, std::string_view asked);

// Whether `asked` names a model of gpu_facts.hpp, or is only a memory size.
bool is_known_gpu(std::string_view asked);

// The model of gpu_facts.hpp with the nearest name, for "did you mean"; "A100:8" for "A100x8". "": `asked` is a known
// model, or no known name is near.
std::string nearest_gpu(std::string_view asked);

}  // namespace rille::provider
