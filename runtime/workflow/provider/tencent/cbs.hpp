// The API of Tencent Cloud's disk service CBS: lists and deletes disks that outlived their machines. Loop thread only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"

namespace rille::provider::tencent {

class Cbs {
 public:
  Cbs(Loop& loop, net::CredentialChain& keys, const std::string& region, const Value& endpoints);

  // Disks with Rille's tag that are attached to no instance, as (disk id, tag).
  Async<std::vector<std::pair<std::string, std::string>>> loose_disks(CancelToken token);
  Async<> remove(std::string disk, CancelToken token);

 private:
  Async<Value> call(std::string action, Value request, CancelToken token);

  std::string url_;
  net::Api api_;
};

}  // namespace rille::provider::tencent
