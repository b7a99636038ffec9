// Access to a Kubernetes cluster: from the kubeconfig that kubectl would use, or, inside a pod, from the pod's service
// account. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::provider {

struct KubeAccess {
  std::string server;      // URL: "https://10.0.0.1:6443"
  std::string ca_file;     // PEM file; "": the system's certificates
  std::string name_space;  // the namespace of the kubeconfig's context
  Value user;              // has token, tokenFile or exec; null: no credentials needed (kubectl proxy)
  Value cluster;           // spec.cluster of the ExecCredential for a credential plug-in
  std::string client_certificate, client_key;  // PEM text; "": none
};

// `kubeconfig` "": use $KUBECONFIG, else ~/.kube/config, else the service account. `context` "": the current context.
// `cache`: folder into which the cluster's certificate is written; the user's key is never written. Rille itself reads
// one JSON file; for YAML or several files, separated by colons, it runs kubectl. Fails with kind config if the
// kubeconfig is missing or not valid.
Async<KubeAccess> find_kube_access(Loop& loop, std::string kubeconfig, std::string context, std::string cache,
                                   CancelToken token);

// A user's credentials: a token, or a certificate from a plug-in.
struct KubeKeys {
  net::FoundKeys found;
  std::string client_certificate, client_key;  // PEM text; "": none
};
// The credentials for a call; nullopt: the user needs none. Fails with kind auth if the credential plug-in fails.
Async<std::optional<KubeKeys>> kube_keys(Loop& loop, Value user, Value cluster, CancelToken token);

}  // namespace rille::provider
