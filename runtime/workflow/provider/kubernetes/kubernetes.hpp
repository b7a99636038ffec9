// The provider `kubernetes`: a rent is a Job whose only pod keeps its GPUs until it is deleted or its deadline has
// passed; the channel is `kubectl exec`. A Job's name comes from its tag, so a create that is repeated finds it.
// See docs/manual/providers/kubernetes.md.
#pragma once

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// config: what is wrong with the settings.
Result<std::unique_ptr<Provider>> make_kubernetes_provider(Setup setup);

inline constexpr const char* kubernetes_variables[] = {"KUBECONFIG", "KUBERNETES_SERVICE_HOST",
                                                       "KUBERNETES_SERVICE_PORT"};
inline constexpr const char* kubernetes_options[] = {"priority_class", "image"};
// Pods are cut to the wish.
inline constexpr Manner kubernetes_manner{true, kubernetes_variables, {}, kubernetes_options};

}  // namespace rille::provider
