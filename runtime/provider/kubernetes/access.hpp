// How a cluster is reached: kubeconfig, as kubectl finds it, or a pod's own service account. Loop thread only.
#pragma once

#include <string>

#include "runtime/base/value.hpp"
#include "runtime/provider/cloud/credentials.hpp"

namespace rille::provider {

struct KubeAccess {
  std::string server;           // "https://10.0.0.1:6443"
  std::string ca_file;          // "": the system's
  std::string name_space;       // of the context
  Value user;                   // {token} | {tokenFile} | {exec}; null: none is needed (kubectl proxy)
  std::string client_certificate, client_key;  // PEM; "": the user has none
};

// `kubeconfig` "": $KUBECONFIG, ~/.kube/config, else the service account. `cache`: where the cluster's certificate may
// be kept; the user's key is held in memory alone. config: none is found, or it cannot be understood. A file that is
// YAML is read by kubectl, and so are several, as $KUBECONFIG may name them.
Async<KubeAccess> find_kube_access(Loop& loop, std::string kubeconfig, std::string cache, CancelToken token);

// The token for a call.
Async<std::optional<cloud::FoundKeys>> kube_token(Loop& loop, Value user, CancelToken token);

}  // namespace rille::provider
