// The settings of the providers, which their stores share: providers.json.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"

namespace rille::store {

// The file's fields, one of each provider. "": none. io; config: the file is no object of JSON.
Result<Value> read_settings(const std::string& file);

}  // namespace rille::store
