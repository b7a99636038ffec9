// Google access tokens, found as Google's own tools find them. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::gcp {

// The key file of a service account, a logged-in user or a federated workload: `named`, else
// $GOOGLE_APPLICATION_CREDENTIALS, else gcloud's own; "": there is none.
std::string key_file(const std::string& named);
// io, auth: it cannot be read. The result holds secrets.
Result<Value> read_key_file(const std::string& file);

// The project of gcloud's active configuration; "": none is set. config: the configuration cannot be read.
Result<std::string> gcloud_project();

// That file, else the metadata service of this machine.
CredentialChain key_chain(Loop& loop, const std::string& named, const Value& endpoints);

}  // namespace rille::net::gcp
