#include "runtime/workflow/provider/reach.hpp"

#include "runtime/workflow/provider/manner.hpp"

namespace rille::provider {

Reach reach_of(const Error& e) {
  for (const FarRefusal& known : manner_of(e.provider).refusals)
    if (known.code == e.code) return known.reach;
  // A missing permission may concern one machine type only; rejected keys are rejected everywhere.
  const bool denied = e.code.starts_with("UnauthorizedOperation") || e.code.find("ERMISSION") != std::string::npos ||
                      e.http_status == 403;
  if (e.kind == ErrorKind::auth) return denied ? Reach::offer : Reach::account;
  if (e.kind == ErrorKind::quota) return Reach::larger;
  if (e.kind == ErrorKind::config) return Reach::region;
  return Reach::offer;
}

}  // namespace rille::provider
