// Keys for services that want one key in a header of each request and no signature; and JSON requests. The key is in an
// environment variable or in a file of the service's command line tool. It is kept as Credentials::token, as bear_token
// (bearer.hpp) expects. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

KeySource key_from_variable(std::string name);
// A key in a file in the user's home with [section] and field = key, quoted or not. field "": the whole file is the
// key. No keys if the file does not exist.
KeySource key_from_file(std::string path, std::string section, std::string field);

Parts bear_plain_key(Parts parts, const Credentials& who, std::int64_t wall_us);

// `base` is such as "https://api.example.com/v1"; `path` is appended unchanged; a null `body` means no body.
Parts json_request(const std::string& method, const std::string& base, const std::string& path, const Value& body = {});

}  // namespace rille::net
