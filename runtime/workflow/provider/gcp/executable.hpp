// The token that a program prints (credential_source.executable), as Google's own libraries have it run: only where
// GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES is 1, for the file that names the program may come from elsewhere.
// Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::provider::gcp {

// `file`: of the type external_account. auth: it is not allowed, fails, or says that there is no token.
Async<std::string> program_token(Loop& loop, Value file, std::string from, CancelToken token);

// Of what it printed, or left in its output_file. auth: it is no token, or one whose time is over.
Result<std::string> token_of_program(const Value& printed, std::int64_t now_us, const std::string& what);

}  // namespace rille::provider::gcp
