// XmlStore: S3 and the stores that took their interface from it (OSS, COS, OBS, MinIO, ..). They differ in hosts,
// signatures and in how a condition is written: Dialect. Private to objects/.
#pragma once

#include "runtime/core/store/objects/rest_store.hpp"

namespace rille::objects {

struct Dialect {
  std::string scheme, provider;
  // with bucket and region in it, unless the bucket is in the path
  std::function<std::string(const std::string& bucket, const std::string& region)> host;
  std::string web = "https";
  bool bucket_in_path = false;
  bool marker_lists = false;  // the older kind of list, with `marker`
  enum class Conditions { none, headers, forbid_overwrite } conditions = Conditions::headers;
  Traits traits;
  std::function<net::Parts(net::Parts, const net::Credentials&, const std::string& region, std::int64_t wall_us)> sign;
  std::function<std::string(net::Parts, const net::Credentials&, const std::string& region, std::int64_t wall_us,
                            std::int64_t expires_s)>
      presign;
};

class XmlStore : public RestStore {
 public:
  static std::unique_ptr<XmlStore> open(const ObjectUrl& url, const StoreSetup& setup, Dialect dialect,
                                        net::CredentialChain chain);

  Traits traits() const override { return dialect_.traits; }
  std::string server() const override { return dialect_.web + "://" + dialect_.host(url_.bucket, *region_); }
  Async<ListPage> list(ListRequest request, CancelToken token) override;
  Async<std::string> put(std::string key, Body body, PutRequest request, CancelToken token) override;
  Async<std::string> begin_parts(std::string key, std::string content_type, CancelToken token) override;
  Async<Part> put_part(std::string key, std::string upload, int number, Body body, CancelToken token) override;
  Async<std::string> complete_parts(std::string key, std::string upload, std::vector<Part> parts, PutRequest request,
                                    CancelToken token) override;
  Async<> abort_parts(std::string key, std::string upload, CancelToken token) override;
  Async<Presigned> presign(PresignRequest request, CancelToken token) override;

 protected:
  // `region` is shared with the signer, and changes when the store tells that the bucket is elsewhere.
  using Region = std::shared_ptr<std::string>;
  XmlStore(const ObjectUrl& url, const StoreSetup& setup, RestSetup own, Dialect dialect, Region region,
           net::CredentialChain chain)
      : RestStore(url, setup, std::move(own), std::move(chain)), dialect_(std::move(dialect)),
        region_(std::move(region)) {}
  net::Parts xml_parts(const char* method, const std::string& key) const;  // key "": the bucket
  net::Parts object_parts(const char* method, const std::string& key, const std::string& version) const override;
  // Error invalid: this store has no such condition.
  Result<net::Headers> condition(const PutRequest& request, bool completes) const;
  Result<net::Parts> presigned_parts(const PresignRequest& request) const;

  Dialect dialect_;
  Region region_;
};

}  // namespace rille::objects
