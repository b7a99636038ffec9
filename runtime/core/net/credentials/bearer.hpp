// OAuth 2 access tokens, for clouds whose calls carry a token (Authorization: Bearer). A form requests the token; the
// CredentialChain keeps it as Credentials::token until shortly before it expires. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

struct TokenForm {
  std::string provider, url;
  std::string from;  // where the form's secret comes from, for messages
  // Returns the form's fields. The time is that of the service's clock, because an assertion contains a time.
  std::function<Query(std::int64_t wall_us)> fields;
};

// Requests a token; waits when throttled and corrects for clock skew. Errors: auth (refused), network (no answer).
Async<std::optional<FoundKeys>> ask_token(Loop& loop, TokenForm form, CancelToken token);

// The token of this machine's identity, from the machine's metadata service; empty if there is none. `firmware`: as in
// MachineKeys (lent_keys.hpp).
Async<std::optional<FoundKeys>> machine_token(Loop& loop, std::string url, Headers headers,
                                              std::vector<const char*> firmware, CancelToken token);

Parts bear_token(Parts parts, const Credentials& who);

}  // namespace rille::net
