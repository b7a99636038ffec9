// How Tencent Cloud's services are called: the request, its signature, the answer and the error codes that all services
// share. Pure functions; any thread.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"

namespace rille::net::tencent {

// Put the error codes of one service into ApiOptions::meanings.
ApiOptions api_options(std::string service, std::string version, std::string region);
Parts parts_for(const std::string& url, const std::string& action, std::string body);

}  // namespace rille::net::tencent
