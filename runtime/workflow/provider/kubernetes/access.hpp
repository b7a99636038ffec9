// Access to a cluster: kubeconfig, found as by kubectl, or a pod's service account. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::provider {

struct KubeAccess {
  std::string server;                          // "https://10.0.0.1:6443"
  std::string ca_file;                         // "": the system's
  std::string name_space;                      // the context's
  Value user;                                  // {token} | {tokenFile} | {exec}; null: none needed (kubectl proxy)
  Value cluster;                               // for credential plug-ins: spec.cluster of an ExecCredential
  std::string client_certificate, client_key;  // PEM; "": none
};

// `kubeconfig` "": $KUBECONFIG, ~/.kube/config, else the service account; `context` "": the current one. `cache`: a
// folder for the cluster's certificate; the user's key stays in memory. YAML files, and several files separated by
// colons, are read and merged by kubectl. config: not found, or not valid.
Async<KubeAccess> find_kube_access(Loop& loop, std::string kubeconfig, std::string context, std::string cache,
                                   CancelToken token);

// A user's credentials: a token, or a certificate from a plug-in.
struct KubeKeys {
  net::FoundKeys found;
  std::string client_certificate, client_key;  // PEM; "": none
};
// The credentials for a call. Empty: the user needs none. auth: the plug-in fails.
Async<std::optional<KubeKeys>> kube_keys(Loop& loop, Value user, Value cluster, CancelToken token);

}  // namespace rille::provider
