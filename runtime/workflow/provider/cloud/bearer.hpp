// Access tokens of OAuth 2, for the clouds whose calls bear one: asked for by a form that who we are fills in, kept by
// the CredentialChain until shortly before their end, in Credentials::token.
// Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/net/sign/parts.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::cloud {

struct TokenForm {
  std::string provider, url;
  std::string from;  // for people: where the secret is that fills in the form
  // The form at that time by the service's clock: an assertion has a time in it.
  std::function<net::Query(std::int64_t wall_us)> fields;
};

// Waits where it is told to, and corrects the clock. auth: refused; network: nobody answers.
Async<std::optional<FoundKeys>> ask_token(Loop& loop, TokenForm form, CancelToken token);

// The token of the machine that we run on, from its metadata service; nothing where there is none. `firmware`: as in
// MachineKeys (lent_keys.hpp).
Async<std::optional<FoundKeys>> machine_token(Loop& loop, std::string url, net::Headers headers,
                                              std::vector<const char*> firmware, CancelToken token);

// Signs a call: Authorization: Bearer.
net::Parts bear_token(net::Parts parts, const net::Credentials& who);

}  // namespace rille::provider::cloud
