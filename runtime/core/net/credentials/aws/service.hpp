// How AWS's services are called: the request, its signature, the answer and the error codes that all services share.
// Pure functions; any thread.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"

namespace rille::net::aws {

// `service`: the service name in the signature, such as "sts". `json`: the service answers in JSON instead of XML. Put
// the error codes of one service into ApiOptions::meanings.
ApiOptions api_options(const std::string& region, const char* service, bool json);
Parts parts_for(const std::string& url);           // a POST whose body the caller fills in
std::string domain_of(const std::string& region);  // "amazonaws.com", or "amazonaws.com.cn" for regions in China

}  // namespace rille::net::aws
