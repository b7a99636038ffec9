// What this machine's firmware says of who has made it: in a cloud, its name. So the metadata service of another one is
// hardly waited for: where it is not there, nobody answers at all. Blocks for a moment; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rille::provider::cloud {

inline constexpr const char* firmware_folder = "/sys/class/dmi/id";

// How long to wait for the service's address: two seconds where one of the words stands in the firmware, in whatever
// case, or there are no words; one where nothing can be read; else a moment, for a machine that we do not know.
std::int64_t patience_ms(const std::vector<const char*>& words, const std::string& folder = firmware_folder);

}  // namespace rille::provider::cloud
