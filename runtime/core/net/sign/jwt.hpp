// JSON Web Tokens signed with RS256 (RFC 7515), which Google and Azure exchange for access tokens.
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::net {

std::string to_base64url(std::string_view bytes);  // base64url without padding

// Signs with RSASSA-PKCS1-v1_5 and SHA-256 (RS256). Errors as of sign_jwt. The result is raw bytes.
Result<std::string> sign_rs256(std::string_view text, const std::string& key_pem);

// Returns header.claims.signature. Error `auth`: key_pem is not an RSA key in PEM. The message never contains the key.
Result<std::string> sign_jwt(std::string_view header_json, std::string_view claims_json, const std::string& key_pem);

}  // namespace rille::net
