// Google's access tokens without a key of Google's: for the token of another identity provider (workload identity
// federation), and by standing in for a service account. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::gcp {

inline constexpr const char* token_scope = "https://www.googleapis.com/auth/cloud-platform";

// `file`: of the type external_account. auth: it names no token, or Google does not take it.
Async<std::optional<cloud::FoundKeys>> federated_token(Loop& loop, Value file, std::string from, CancelToken token);
// The token of the service account that `file` names (service_account_impersonation_url), for the caller's own.
Async<std::optional<cloud::FoundKeys>> impersonate(Loop& loop, Value file, cloud::FoundKeys caller, CancelToken token);
// The e-mail of the service account that a file signs in as; "": it is none, or not told.
std::string account_of(const Value& file);

// What a document of an identity provider holds: the whole of it, or a field of its JSON. auth: nothing.
Result<std::string> subject_token_in(const std::string& text, const Value& format, const std::string& place);

}  // namespace rille::provider::gcp
