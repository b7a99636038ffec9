// How Alibaba Cloud's services are called: the request, its signature, the answer and the error codes that all of them
// share. Pure; any thread.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"

namespace rille::net::alibaba {

// A service's own error codes go into ApiOptions::meanings.
ApiOptions api_options(std::string api_version);
Parts parts_for(const std::string& url, const std::string& action);

}  // namespace rille::net::alibaba
