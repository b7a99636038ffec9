// Removes secrets from the parts of a request: URLs (userinfo, signed queries) and headers. Errors and logs contain
// only what these functions return. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace rille::net {

// The URL without user, password and fragment, and with "***" for the value of each query parameter whose name suggests
// a signature, token, key, credential or password. A text that is not a URL gives "(not a URL)".
std::string redact_url(std::string_view url);
// The same without the query: for a signed address, whose query says nothing to a reader.
std::string shown_address(std::string_view url);
// Whether the header's value is a secret: true for Authorization, cookies, and names that suggest a key, token or
// secret.
bool is_secret_header(std::string_view name);

}  // namespace rille::net
