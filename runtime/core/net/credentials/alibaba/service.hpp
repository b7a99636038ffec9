// How Alibaba Cloud's services are called: the request, its signature, the answer and the error codes that all services
// share. Pure functions; any thread.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"

namespace rille::net::alibaba {

// Put the error codes of one service into ApiOptions::meanings.
ApiOptions api_options(std::string api_version);
Parts parts_for(const std::string& url, const std::string& action);

}  // namespace rille::net::alibaba
