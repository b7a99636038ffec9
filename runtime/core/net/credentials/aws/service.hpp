// How AWS's services are called: the request, its signature, the answer and the error codes that all of them share.
// Pure; any thread.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"

namespace rille::net::aws {

// `service`: the name to sign for, "sts"; `json`: it answers in JSON, not in XML. A service's own error codes go into
// ApiOptions::meanings.
ApiOptions api_options(const std::string& region, const char* service, bool json);
Parts parts_for(const std::string& url);           // a POST without a body yet
std::string domain_of(const std::string& region);  // "amazonaws.com"

}  // namespace rille::net::aws
