// How a cluster is reached: kubeconfig, as kubectl finds it, or a pod's own service account. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::provider {

struct KubeAccess {
  std::string server;                          // "https://10.0.0.1:6443"
  std::string ca_file;                         // "": the system's
  std::string name_space;                      // of the context
  Value user;                                  // {token} | {tokenFile} | {exec}; null: none is needed (kubectl proxy)
  Value cluster;                               // what a plug-in may be told of it: spec.cluster of an ExecCredential
  std::string client_certificate, client_key;  // PEM; "": the user has none
};

// `kubeconfig` "": $KUBECONFIG, ~/.kube/config, else the service account; `context` "": the current one. `cache`: where
// the cluster's certificate may be kept; the user's key is held in memory alone. config: none is found, or it cannot be
// understood. A file that is YAML is read by kubectl, and so are several with colons between them, which it merges.
Async<KubeAccess> find_kube_access(Loop& loop, std::string kubeconfig, std::string context, std::string cache,
                                   CancelToken token);

// What a user shows: a token, or a certificate that a plug-in gives.
struct KubeKeys {
  net::FoundKeys found;
  std::string client_certificate, client_key;  // PEM; "": none
};
// For a call. None: the user has nothing of the kind. auth: a plug-in gives nothing.
Async<std::optional<KubeKeys>> kube_keys(Loop& loop, Value user, Value cluster, CancelToken token);

}  // namespace rille::provider
