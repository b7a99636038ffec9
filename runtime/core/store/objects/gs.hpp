// Google Cloud Storage: the JSON interface, and the XML one where JSON has nothing alike (parts that anyone may put, in
// any order). A version is the object's generation. Private to objects/.
#pragma once

#include "runtime/core/store/objects/xml_store.hpp"

namespace rille::objects {

class GsStore final : public XmlStore {
 public:
  // `google`: gcp's settings. Error config: the endpoint is not a URL.
  static Result<std::unique_ptr<ObjectStore>> open(const ObjectUrl& url, const StoreSetup& setup, const Value& google,
                                                   const std::string& endpoint, bool with_keys);

  Async<ObjectInfo> head(std::string key, CancelToken token) override;
  Async<ListPage> list(ListRequest request, CancelToken token) override;
  Async<std::string> put(std::string key, Body body, PutRequest request, CancelToken token) override;
  Async<Presigned> presign(PresignRequest request, CancelToken token) override;

 private:
  using XmlStore::XmlStore;
  net::Parts json_parts(const char* method, const std::string& path) const;
  net::Parts object_parts(const char* method, const std::string& key, const std::string& version) const override;
  net::Parts bytes_parts(const std::string& key, const std::string& version) const override;
  std::string version_in(const net::HttpResponse& response) const override {
    return response.header("x-goog-generation");
  }
  Async<std::string> account(CancelToken token);
  Async<std::string> signature(std::string account, std::string text, CancelToken token);

  std::string key_file_, iam_, metadata_;
};

}  // namespace rille::objects
