// A provider implemented by an external web service: six JSON calls over HTTP with the fields of types.hpp. Used for a
// custom pool of machines, and for simulated clouds in tests. The protocol: docs/manual/providers/remote.md.
#pragma once

#include <memory>
#include <string>

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

// `settings`: {"url": .., "traits": {..}}. config: an unknown or wrong field.
Result<std::unique_ptr<Provider>> make_remote_provider(Loop& loop, const Value& settings);

}  // namespace rille::provider
