// Google access tokens without a Google key: in exchange for another identity provider's token (workload identity
// federation), and by impersonating a service account. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::gcp {

inline constexpr const char* token_scope = "https://www.googleapis.com/auth/cloud-platform";

// `file`: a key file of type external_account. auth: it yields no token, or Google refuses the token.
Async<std::optional<FoundKeys>> federated_token(Loop& loop, Value file, std::string from, CancelToken token);
// The token of the service account that `file` names (service_account_impersonation_url), requested with the caller's.
Async<std::optional<FoundKeys>> impersonate(Loop& loop, Value file, FoundKeys caller, CancelToken token);
// The e-mail of the service account that a key file signs in as; "": unknown, or not a service account.
std::string account_of(const Value& file);

// The identity provider's token in a document: all of it, or one field of its JSON. auth: there is none.
Result<std::string> subject_token_in(const std::string& text, const Value& format, const std::string& place);

}  // namespace rille::net::gcp
