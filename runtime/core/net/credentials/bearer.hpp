// OAuth 2 access tokens, for clouds whose calls carry one (Authorization: Bearer). A token is requested with a form and
// kept by the CredentialChain, as Credentials::token, until shortly before it expires.
// Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

struct TokenForm {
  std::string provider, url;
  std::string from;  // for people: where the form's secret comes from
  // The form's fields at the given time of the service's clock: an assertion contains a time.
  std::function<Query(std::int64_t wall_us)> fields;
};

// Waits when throttled and corrects for clock skew. auth: refused; network: no answer.
Async<std::optional<FoundKeys>> ask_token(Loop& loop, TokenForm form, CancelToken token);

// The token of this machine's identity, from its metadata service; nothing if there is none. `firmware`: as in
// MachineKeys (lent_keys.hpp).
Async<std::optional<FoundKeys>> machine_token(Loop& loop, std::string url, Headers headers,
                                              std::vector<const char*> firmware, CancelToken token);

Parts bear_token(Parts parts, const Credentials& who);

}  // namespace rille::net
