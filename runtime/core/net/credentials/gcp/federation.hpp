// Google access tokens without a Google key: in exchange for another identity provider's token (workload identity
// federation), and by impersonating a service account. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::gcp {

inline constexpr const char* token_scope = "https://www.googleapis.com/auth/cloud-platform";

// `file`: a key file of type external_account. Error `auth`: the file yields no token, or Google refuses the token.
Async<std::optional<FoundKeys>> federated_token(Loop& loop, Value file, std::string from, CancelToken token);
// Uses the token `caller` to request a token of the service account in service_account_impersonation_url of `file`.
Async<std::optional<FoundKeys>> impersonate(Loop& loop, Value file, FoundKeys caller, CancelToken token);
// The e-mail of the service account for which a key file gives tokens; "": unknown, or not a service account.
std::string account_of(const Value& file);

// The identity provider's token in a document: the whole text, or one field of its JSON. Error `auth`: there is no
// token.
Result<std::string> subject_token_in(const std::string& text, const Value& format, const std::string& place);

}  // namespace rille::net::gcp
