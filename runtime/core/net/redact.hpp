// What may be shown of a request. Secrets stand in URLs (userinfo, signed queries) and in headers; errors and
// logs only ever hold what these functions return. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace rille::net {

// The URL without userinfo and fragment, with "***" for the values of query parameters whose names speak of
// signatures, tokens, keys, credentials or passwords. What is not a URL comes back as "(not a URL)" cut of
// all detail.
std::string redact_url(std::string_view url);
// True for headers whose value is a secret: Authorization, cookies, and names that speak of keys, tokens,
// secrets...
bool is_secret_header(std::string_view name);

}  // namespace rille::net
