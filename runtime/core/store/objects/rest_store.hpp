// RestStore: what all stores do alike: reading with resume, heads, puts and removals of one URL. Private to objects/.
#pragma once

#include "runtime/core/store/objects/rest.hpp"
#include "runtime/core/store/objects/url.hpp"

namespace rille::objects {

class RestStore : public ObjectStore {
 public:
  RestStore(const ObjectUrl& url, const StoreSetup& setup, RestSetup own, net::CredentialChain chain)
      : url_(url), rest_(setup, std::move(own), std::move(chain)) {}

  std::string address(const std::string& key) const override { return url_.root() + key; }
  Async<ObjectInfo> head(std::string key, CancelToken token) override;
  Async<ObjectInfo> get(std::string key, GetRequest request, Sink sink, CancelToken token) override;
  Async<> remove(std::string key, CancelToken token) override;

 protected:
  // A request for the object; `version` not "": only for that version of it.
  virtual net::Parts object_parts(const char* method, const std::string& key, const std::string& version) const = 0;
  virtual net::Parts bytes_parts(const std::string& key, const std::string& version) const {
    return object_parts("GET", key, version);
  }
  virtual std::string version_in(const net::HttpResponse& response) const { return response.header("etag"); }

  Call call_of(std::string operation, const std::string& key, std::function<net::Parts()> parts) const;
  Call conditional(Call call, const PutRequest& request) const {
    call.once = request.if_absent || !request.if_match.empty();
    return call;
  }
  // Sends the end of an upload in parts. An attempt whose answer was lost has perhaps made the object, of `size_bytes`;
  // the next one then finds no upload. nullopt: that is so, and the version is in `info`.
  Async<std::optional<net::HttpResponse>> send_end(Call call, std::string key, std::int64_t size_bytes,
                                                   ObjectInfo& info, CancelToken token);
  ObjectInfo info_in(const std::string& key, const net::HttpResponse& response) const;

  ObjectUrl url_;
  Rest rest_;

 private:
  struct Reading;
  Call reading_call(Reading& reading);
};

}  // namespace rille::objects
