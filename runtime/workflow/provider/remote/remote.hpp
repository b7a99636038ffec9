// A provider that is somebody's web service: six calls of JSON over HTTP, with the words of types.hpp. For a pool of
// machines that no other provider knows, and for a cloud made by a test. The protocol: docs/manual/providers/remote.md.
#pragma once

#include <memory>
#include <string>

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

// `settings`: {"url": .., "traits": {..}}. config: they say what nobody knows.
Result<std::unique_ptr<Provider>> make_remote_provider(Loop& loop, const Value& settings);

}  // namespace rille::provider
