// Stands in until the build embeds stdlib/: no modules.
#include "bindings/host/stdlib_table.hpp"

namespace rille::host {
std::optional<std::string_view> stdlib_source(std::string_view) { return {}; }
std::vector<std::string_view> stdlib_names() { return {}; }
}  // namespace rille::host
