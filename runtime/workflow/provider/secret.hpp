// The secret of this installation: 32 random bytes, made once, from which the keys of single machines are derived, so
// that every process of the installation has the same ones and none is stored. It is outside $RILLE_HOME, so that a
// copied or lost home contains no key. Any thread; these calls block.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::provider {

// The file `folder`/secret (0600); makes it, and the folder (0700), if missing. io; integrity: a damaged file.
Result<std::string> installation_secret(const std::string& folder);

// The file's text; if there is no file, writes `text` (0600). The first of two writers wins.
Result<std::string> write_once(const std::string& path, const std::string& text);

// The token of this installation's runners for the agent of the machine with that tag: 64 hexadecimal digits.
std::string agent_token(const std::string& secret, const std::string& tag);

}  // namespace rille::provider
