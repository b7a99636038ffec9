// Clouds that want one key in the header of each request, and no signature; and requests with JSON in them. Where the
// key is: a variable of the environment, or a file of the cloud's own tool.
// The key stands as the token of net::Credentials, as bear_token (bearer.hpp) wants it. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/sign/parts.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::cloud {

KeySource key_from_variable(std::string name);
// A file in the user's home: [section] field = key, quoted or not; field "": the file is the key. No file: no key.
KeySource key_from_file(std::string path, std::string section, std::string field);

net::Parts bear_plain_key(net::Parts parts, const net::Credentials& who, std::int64_t wall_us);

// `base`: "https://api.example.com/v1"; `path` is put behind it as it is, `body` null: none.
net::Parts json_request(const std::string& method, const std::string& base, const std::string& path,
                        const Value& body = {});

}  // namespace rille::provider::cloud
