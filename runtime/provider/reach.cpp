#include "runtime/provider/reach.hpp"

#include <algorithm>
#include <string_view>

namespace rille::provider {

namespace {

struct Row {
  std::string_view provider, code;  // "Prefix.*"
  Reach reach;
};

// Where it differs from what the kind says. Each driver's table of meanings has the codes' sources.
constexpr Row rows[] = {
    {"aws", "InsufficientFreeAddressesInSubnet", Reach::region},
    {"aws", "OptInRequired", Reach::region},
    {"aws", "PendingVerification", Reach::account},
    {"aws", "InstanceLimitExceeded", Reach::offer},
    {"aws", "VolumeLimitExceeded", Reach::region},
    {"alibaba", "Zone.NotOnSale", Reach::region},
    {"alibaba", "OperationDenied.ZoneNotAllowed", Reach::region},
    {"alibaba", "OperationDenied.ZoneSystemCategoryNotMatch", Reach::region},
    {"alibaba", "InvalidAccountStatus.NotEnoughBalance", Reach::account},
    {"alibaba", "Account.Arrearage", Reach::account},
    {"tencent", "UnsupportedOperation.SpotUnsupportedRegion", Reach::region},
    {"tencent", "InvalidAccount.InsufficientBalance", Reach::account},
    {"gcp", "REGION_RESOURCE_POOL_EXHAUSTED", Reach::region},
    {"azure", "AzureSpotFeatureNotEnabledForSubscription", Reach::account},
    {"lambda", "global/account-inactive", Reach::account},
    {"lambda", "global/quota-exceeded", Reach::account},
    {"vast", "insufficient_credit", Reach::account},
    {"runpod", "no-money", Reach::account},
    {"runpod", "402", Reach::account},
};

}  // namespace

Reach reach_of(const Error& e) {
  const auto speaks_of = [&e](const Row& r) { return r.provider == e.provider && r.code == e.code; };
  const Row* row = std::find_if(std::begin(rows), std::end(rows), speaks_of);
  if (row != std::end(rows)) return row->reach;
  // Rights may be given type by type; keys that are not taken are taken nowhere.
  const bool denied = e.code.starts_with("UnauthorizedOperation") || e.code.find("ERMISSION") != std::string::npos ||
                      e.http_status == 403;
  if (e.kind == ErrorKind::auth) return denied ? Reach::offer : Reach::account;
  if (e.kind == ErrorKind::quota) return Reach::larger;
  if (e.kind == ErrorKind::config) return Reach::region;
  return Reach::offer;
}

}  // namespace rille::provider
