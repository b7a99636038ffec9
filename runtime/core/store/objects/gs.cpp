#include "runtime/core/store/objects/gs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/net/content.hpp"
#include "runtime/core/net/credentials/api.hpp"
#include "runtime/core/net/credentials/bearer.hpp"
#include "runtime/core/net/credentials/gcp/federation.hpp"
#include "runtime/core/net/credentials/gcp/keys.hpp"
#include "runtime/core/net/credentials/lent_keys.hpp"
#include "runtime/core/net/sign/google.hpp"
#include "runtime/core/net/sign/jwt.hpp"
#include "runtime/core/store/objects/answers.hpp"
#include "runtime/core/store/objects/open.hpp"

namespace rille::objects {

namespace {

constexpr const char* impersonation =
    "the service account needs the right iam.serviceAccounts.signBlob for itself: "
    "the role Service Account Token Creator";

// The errors of the JSON interface; the XML one answers like S3.
StoreWords read_google_error(const net::HttpResponse& response) {
  if (!trimmed(response.body.substr(0, 16)).starts_with("{")) return read_xml_error(response);
  StoreWords out;
  out.request_id = response.header("x-guploader-uploadid");
  const Result<Value> value = plain_json(response.body);
  if (!value) return out;
  const Value& error = (*value)["error"];
  out.message = error.text("message");
  const Value::Array errors = net::list_of(error["errors"]);
  if (!errors.empty()) out.code = errors.front().text("reason");
  if (out.message.find("bucket does not exist") != std::string::npos) out.code = "NoSuchBucket";
  return out;
}

Result<ObjectInfo> read_google_object(const Value& row) {
  ObjectInfo info;
  info.key = row.text("name");
  info.size_bytes = net::size_in(row.text("size"));
  info.version = row.text("generation");
  info.modified_wall_us = time_in(row.text("updated"));
  info.content_type = row.text("contentType");
  if (info.size_bytes < 0 || info.version.empty()) return bad_answer("an object has no size or generation");
  return info;
}

Result<Value> read_google_json(const net::HttpResponse& answer) {
  Result<Value> value = plain_json(answer.body);
  if (!value || !value->as_object()) return bad_answer("it is not a JSON object");
  return value;
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> GsStore::open(const ObjectUrl& url, const StoreSetup& setup, const Value& google,
                                                   const std::string& endpoint, bool with_keys) {
  Dialect dialect;
  dialect.scheme = url.scheme;
  dialect.provider = "gcp";
  dialect.bucket_in_path = true;
  RILLE_TRY(const WebPlace place, web_place(endpoint.empty() ? "https://storage.googleapis.com" : endpoint));
  dialect.web = place.scheme;
  dialect.host = [host = place.host](const std::string&, const std::string&) { return host; };
  dialect.traits.put_bytes_max = std::int64_t{5} << 40;
  dialect.traits.completes_if_absent = dialect.traits.completes_if_match = false;
  RestSetup own;
  own.provider = dialect.provider;
  own.read_error = read_google_error;
  own.sign = [](net::Parts parts, const net::Credentials& who, std::int64_t, std::int64_t) -> Result<net::Parts> {
    return who.token.empty() ? parts : net::bear_token(std::move(parts), who);
  };
  const Value& endpoints = google["endpoints"];
  net::CredentialChain chain = with_keys ? net::gcp::key_chain(setup.loop, google.text("credentials"), endpoints)
                                         : net::CredentialChain(setup.loop, "gcp", net::no_keys(), "");
  std::unique_ptr<GsStore> store(
      new GsStore(url, setup, std::move(own), std::move(dialect), std::make_shared<std::string>(), std::move(chain)));
  store->key_file_ = google.text("credentials");
  store->iam_ = endpoints.text("iamcredentials", "https://iamcredentials.googleapis.com");
  store->metadata_ = endpoints.text("metadata", "http://metadata.google.internal");
  return std::unique_ptr<ObjectStore>(std::move(store));
}

net::Parts GsStore::json_parts(const char* method, const std::string& path) const {
  net::Parts parts;
  parts.method = method;
  parts.scheme = dialect_.web;
  parts.host = dialect_.host(url_.bucket, "");
  parts.path = path;
  return parts;
}

net::Parts GsStore::object_parts(const char* method, const std::string& key, const std::string& version) const {
  net::Parts parts = json_parts(method, "/storage/v1/b/" + url_.bucket + "/o/" + net::percent_encode(key));
  if (!version.empty()) parts.query.emplace_back("ifGenerationMatch", version);
  return parts;
}

net::Parts GsStore::bytes_parts(const std::string& key, const std::string& version) const {
  net::Parts parts = object_parts("GET", key, version);
  parts.query.emplace_back("alt", "media");
  parts.set_header("Accept-Encoding", "gzip");  // else Google unpacks objects that are stored packed
  return parts;
}

Async<ObjectInfo> GsStore::head(std::string key, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  const auto about = [this, key] { return object_parts("GET", key, ""); };
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(call_of("head", key, about), token));
  RILLE_CO_TRY(const Value row, read_google_json(answer));
  RILLE_CO_TRY(ObjectInfo info, read_google_object(row));
  info.key = key;
  co_return info;
}

Async<ListPage> GsStore::list(ListRequest request, CancelToken token) {
  const auto list_parts = [this, request] {
    net::Parts parts = json_parts("GET", "/storage/v1/b/" + url_.bucket + "/o");
    parts.query.emplace_back("maxResults", std::to_string(std::clamp(request.count_max, 1, 1000)));
    if (!request.prefix.empty()) parts.query.emplace_back("prefix", request.prefix);
    if (!request.delimiter.empty()) parts.query.emplace_back("delimiter", request.delimiter);
    if (!request.token.empty()) parts.query.emplace_back("pageToken", request.token);
    return parts;
  };
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(call_of("list", request.prefix, list_parts), token));
  RILLE_CO_TRY(const Value value, read_google_json(answer));
  ListPage page;
  for (const Value& row : net::list_of(value["items"])) {
    RILLE_CO_TRY(ObjectInfo info, read_google_object(row));
    if (check_key(info.key)) page.objects.push_back(std::move(info));
  }
  for (const Value& prefix : net::list_of(value["prefixes"]))
    if (prefix.as_string()) page.prefixes.push_back(*prefix.as_string());
  page.next_token = value.text("nextPageToken");
  co_return page;
}

Async<std::string> GsStore::put(std::string key, Body body, PutRequest request, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  const auto put_parts = [this, key, request] {
    net::Parts parts = json_parts("POST", "/upload/storage/v1/b/" + url_.bucket + "/o");
    parts.query = {{"uploadType", "media"}, {"name", key}};
    if (request.if_absent) parts.query.emplace_back("ifGenerationMatch", "0");
    else if (!request.if_match.empty()) parts.query.emplace_back("ifGenerationMatch", request.if_match);
    parts.set_header("Content-Type", request.content_type.empty() ? "application/octet-stream" : request.content_type);
    return parts;
  };
  Call call = conditional(call_of("put", key, put_parts), request);
  call.body = &body;
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(std::move(call), token));
  RILLE_CO_TRY(const Value row, read_google_json(answer));
  co_return row.text("generation");
}

// The service account that signs addresses: of the key file, else of this machine.
Async<std::string> GsStore::account(CancelToken token) {
  const std::string file = net::gcp::key_file(key_file_);
  if (!file.empty()) {
    RILLE_CO_TRY(const Value key, net::gcp::read_key_file(file));
    std::string name = net::gcp::account_of(key);
    if (name.empty())
      co_return make_error(ErrorKind::auth, fmt::format("presign: {} is of a user, who cannot sign addresses", file),
                           "use a service account: its key file, or gcloud auth application-default login "
                           "--impersonate-service-account=ACCOUNT");
    co_return name;
  }
  net::HttpRequest request;
  request.url = metadata_ + "/computeMetadata/v1/instance/service-accounts/default/email";
  request.headers = {{"Metadata-Flavor", "Google"}};
  RILLE_CO_TRY(const net::HttpResponse answer, co_await net::ask_nearby(rest_.loop(), std::move(request), token));
  if (!answer.ok() || answer.body.find('@') == std::string::npos)
    co_return make_error(ErrorKind::auth, "presign: no service account is known that could sign addresses",
                         "set GOOGLE_APPLICATION_CREDENTIALS to a service account's key file");
  co_return trimmed(answer.body);
}

Async<std::string> GsStore::signature(std::string account, std::string text, CancelToken token) {
  if (const std::string file = net::gcp::key_file(key_file_); !file.empty()) {
    RILLE_CO_TRY(const Value key, net::gcp::read_key_file(file));
    if (!key.text("private_key").empty()) co_return net::sign_rs256(text, key.text("private_key"));
  }
  RILLE_CO_TRY(const WebPlace place, web_place(iam_));
  const auto ask = [place, account, body = Value().set("payload", to_base64(text)).to_json()] {
    net::Parts parts;
    parts.method = "POST";
    parts.scheme = place.scheme;
    parts.host = place.host;
    parts.path = "/v1/projects/-/serviceAccounts/" + net::percent_encode(account) + ":signBlob";
    parts.set_header("Content-Type", "application/json");
    parts.body = body;
    return parts;
  };
  Result<net::HttpResponse> answer = co_await rest_.send(call_of("sign", "", ask), token);
  if (!answer) co_return std::move(answer).error().with_hint(impersonation);
  RILLE_CO_TRY(const Value value, read_google_json(*answer));
  co_return from_base64(value.text("signedBlob"));
}

Async<Presigned> GsStore::presign(PresignRequest request, CancelToken token) {
  RILLE_CO_TRY(net::Parts parts, presigned_parts(request));
  if (!request.version.empty()) parts.set_header("x-goog-if-generation-match", request.version);
  RILLE_CO_TRY(const std::string who, co_await account(token));
  const std::int64_t now_us = rest_.now_us();
  const net::GoogleUrl made = net::google_url(std::move(parts), who, now_us, request.expires_s);
  RILLE_CO_TRY(const std::string bytes, co_await signature(who, made.text, token));
  Presigned out;
  out.url = made.parts.url() + "&X-Goog-Signature=" + net::hex(bytes);
  out.headers = made.parts.headers;
  out.expires_wall_us = now_us + request.expires_s * 1'000'000;
  co_return out;
}

}  // namespace rille::objects
