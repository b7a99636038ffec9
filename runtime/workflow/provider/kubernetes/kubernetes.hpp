// The provider `kubernetes`: a machine is a Job whose only pod holds GPUs until the Job is deleted or its deadline
// passes. Rille talks to the pod by `kubectl exec`. The Job's name derives from the tag, so a repeated create finds the
// Job. See docs/manual/providers/kubernetes.md.
#pragma once

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// Fails with kind config on a wrong setting.
Result<std::unique_ptr<Provider>> make_kubernetes_provider(Setup setup);

inline constexpr const char* kubernetes_variables[] = {"KUBECONFIG", "KUBERNETES_SERVICE_HOST",
                                                       "KUBERNETES_SERVICE_PORT"};
inline constexpr const char* kubernetes_options[] = {"priority_class", "image"};
// `true` is Manner::narrow: offers are sized to the query, so an answer serves no other query.
inline constexpr Manner kubernetes_manner{true, kubernetes_variables, {}, kubernetes_options, nullptr, 0, {}, true};

}  // namespace rille::provider
