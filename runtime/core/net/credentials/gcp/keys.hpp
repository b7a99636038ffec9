// Google access tokens, found in the places where Google's tools look. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::gcp {

// The path of a key file of a service account, a logged-in user or a federated workload: `named`, else
// $GOOGLE_APPLICATION_CREDENTIALS, else the file that gcloud writes; "": there is none.
std::string key_file(const std::string& named);
// Errors `io` and `auth`: the file cannot be read. The result holds secrets.
Result<Value> read_key_file(const std::string& file);

// The project of gcloud's active configuration; "": none is set. Error `config`: the configuration cannot be read.
Result<std::string> gcloud_project();

// Asks for a token with key_file(named), else from the metadata service of this machine.
CredentialChain key_chain(Loop& loop, const std::string& named, const Value& endpoints);

}  // namespace rille::net::gcp
