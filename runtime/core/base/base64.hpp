// Base64 (RFC 4648, with padding).
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille {

std::string to_base64(std::string_view bytes);
Result<std::string> from_base64(std::string_view text);  // error `invalid`: the text is not base64
bool is_utf8(std::string_view bytes);

}  // namespace rille
