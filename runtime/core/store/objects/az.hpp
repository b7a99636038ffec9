// Azure Blob Storage: block blobs. Keys: AZURE_STORAGE_KEY (the account's), AZURE_STORAGE_SAS_TOKEN, else the identity
// that net/credentials/azure finds. Private to objects/.
#pragma once

#include "runtime/core/net/sign/azure.hpp"
#include "runtime/core/store/objects/rest_store.hpp"

namespace rille::objects {

class AzureStore final : public RestStore {
 public:
  // `azure`: its settings. endpoint "": Azure's own. Error config: the endpoint is not a URL.
  static Result<std::unique_ptr<ObjectStore>> open(const ObjectUrl& url, const StoreSetup& setup, const Value& azure,
                                                   const std::string& endpoint);

  Traits traits() const override;
  std::string server() const override { return web_ + "://" + host_; }
  Async<ListPage> list(ListRequest request, CancelToken token) override;
  Async<std::string> put(std::string key, Body body, PutRequest request, CancelToken token) override;
  Async<std::string> begin_parts(std::string key, std::string content_type, CancelToken token) override;
  Async<Part> put_part(std::string key, std::string upload, int number, Body body, CancelToken token) override;
  Async<std::string> complete_parts(std::string key, std::string upload, std::vector<Part> parts, PutRequest request,
                                    CancelToken token) override;
  // Azure drops blocks that were never completed after a week.
  Async<> abort_parts(std::string, std::string, CancelToken) override { co_return success(); }
  Async<Presigned> presign(PresignRequest request, CancelToken token) override;

 private:
  using RestStore::RestStore;
  net::Parts container_parts(const char* method) const;
  net::Parts object_parts(const char* method, const std::string& key, const std::string& version) const override;
  Async<net::DelegationKey> delegation_key(std::int64_t to_wall_us, CancelToken token);

  std::string web_, host_, base_;  // base_: "/account" where the host does not name the account
  bool shared_key_ = false, sas_ = false;
  net::DelegationKey lent_;
  std::int64_t lent_until_us_ = 0;
};

}  // namespace rille::objects
