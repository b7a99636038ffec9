// Gets the identity token that a program prints (credential_source.executable). As in Google's libraries, the program
// runs only if GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES is 1, because the key file that names the program may not be
// trusted. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::net::gcp {

// `file`: a key file of type external_account. Error `auth`: the program is not allowed, fails, or reports that it has
// no token.
Async<std::string> program_token(Loop& loop, Value file, std::string from, CancelToken token);

// The token in the program's output or in its output_file. Error `auth`: there is no token, or it has expired.
Result<std::string> token_of_program(const Value& printed, std::int64_t now_us, const std::string& what);

}  // namespace rille::net::gcp
