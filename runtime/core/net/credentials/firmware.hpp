// Recognises a cloud's machines by the vendor name in their firmware, so that other machines wait only briefly for that
// cloud's metadata service. Blocks for a moment; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rille::net {

inline constexpr const char* firmware_folder = "/sys/class/dmi/id";

// How long to wait for a connection to the metadata service: two seconds if the firmware contains one of the words
// (case is ignored) or `words` is empty; one second if the firmware cannot be read; otherwise 300 ms.
std::int64_t patience_ms(const std::vector<const char*>& words, const std::string& folder = firmware_folder);

}  // namespace rille::net
