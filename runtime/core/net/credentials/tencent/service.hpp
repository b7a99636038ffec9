// How Tencent Cloud's services are called: the request, its signature, the answer and the error codes that all of them
// share. Pure; any thread.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"

namespace rille::net::tencent {

// A service's own error codes go into ApiOptions::meanings.
ApiOptions api_options(std::string service, std::string version, std::string region);
Parts parts_for(const std::string& url, const std::string& action, std::string body);

}  // namespace rille::net::tencent
