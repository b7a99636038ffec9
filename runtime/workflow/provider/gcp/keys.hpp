// Where Google's access tokens come from, as Google's own tools find them. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::gcp {

// The file of a service account, of who has logged in, or of a workload that another identity provider knows: `named`,
// $GOOGLE_APPLICATION_CREDENTIALS, or gcloud's own; "": there is none.
std::string key_file(const std::string& named);
// io, auth: it cannot be read. Holds secrets.
Result<Value> read_key_file(const std::string& file);

// The project of gcloud's active configuration; "": it names none. config: it cannot be read.
Result<std::string> gcloud_project();

// That file; else the metadata service of the machine that we run on.
cloud::CredentialChain key_chain(Loop& loop, const std::string& named, const Value& endpoints);

}  // namespace rille::provider::gcp
