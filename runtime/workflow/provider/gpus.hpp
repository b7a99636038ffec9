// Names of GPU models. Drivers, clouds and people write them differently: "NVIDIA A100-SXM4-80GB", "nvidia-a100-80gb",
// "A100 80GB". Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rille::provider {

// The model as Rille shows it: "A100 80GB", "RTX 4090", "H100". Without the maker, the product line and the socket.
std::string gpu_model(std::string_view name);

// "A100-80GB" -> "A100"; a name without a memory stays as it is.
std::string gpu_without_memory(std::string_view asked);

// Words after which it is another GPU than the one without them, or a part of it: "Ti", "Super", "MIG". In any case.
bool makes_another_gpu(std::string_view word);

// Whether `asked` means this model. Every word of it has to be one of the model's, in any case and order; the memory of
// one GPU counts as a word, too: "A100" and "A100-80GB" mean an "A100" with 80 GB, "A10" does not. And what makes it
// another GPU must be asked for: "A100" means no slice of one, "RTX 4070" no "RTX 4070 Ti".
bool gpu_matches(std::string_view model, std::int64_t memory_bytes, std::string_view asked);

// Whether it is a model of gpu_facts.hpp, or names none (a memory alone).
bool is_known_gpu(std::string_view asked);

// A model of gpu_facts.hpp whose name is near, for "did you mean"; "A100:8" of "A100x8". "" when `asked` is one of
// them, or near none.
std::string nearest_gpu(std::string_view asked);

}  // namespace rille::provider
