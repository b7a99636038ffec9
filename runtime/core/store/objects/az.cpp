#include "runtime/core/store/objects/az.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/azure/keys.hpp"
#include "runtime/core/net/credentials/bearer.hpp"
#include "runtime/core/store/objects/answers.hpp"
#include "runtime/core/store/objects/open.hpp"

namespace rille::objects {

namespace {

constexpr std::int64_t second_us = 1'000'000, delegation_lasts_s = 24 * 3600, sas_back_s = 300;

// All block names of a blob must have the same length.
std::string block_id(const std::string& upload, int number) {
  return to_base64(fmt::format("{}-{:05}", upload, number));
}

void set_condition(net::Parts& parts, const PutRequest& request) {
  if (request.if_absent) parts.set_header("If-None-Match", "*");
  else if (!request.if_match.empty()) parts.set_header("If-Match", request.if_match);
}

// How requests are signed: by the account's key, by a SAS that is added to the query, or by a token.
Result<net::Parts> sign_azure_request(net::Parts parts, const net::Credentials& who, std::int64_t wall_us,
                                      std::int64_t body_bytes) {
  parts.set_header("x-ms-version", net::azure_storage_version);
  if (!who.secret.empty()) return net::sign_azure_blob(std::move(parts), who, wall_us, body_bytes);
  if (who.id.empty()) return net::bear_token(std::move(parts), who);
  for (std::string_view left = who.token; !left.empty();) {
    const std::size_t end = std::min(left.find('&'), left.size());
    const std::string_view pair = left.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    parts.query.emplace_back(pair.substr(0, equals),
                             net::percent_decode(pair.substr(std::min(equals + 1, pair.size()))));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return parts;
}

net::CredentialChain azure_chain(const StoreSetup& setup, const Value& azure, const ObjectUrl& url) {
  const std::string key = net::environment("AZURE_STORAGE_KEY");
  std::string sas = net::environment("AZURE_STORAGE_SAS_TOKEN");
  if (sas.starts_with('?')) sas.erase(0, 1);
  net::FoundKeys found;
  found.keys.id = url.account;
  found.from = key.empty() ? "AZURE_STORAGE_SAS_TOKEN" : "AZURE_STORAGE_KEY";
  (key.empty() ? found.keys.token : found.keys.secret) = key.empty() ? sas : key;
  if (!key.empty() || !sas.empty()) return {setup.loop, "azure", {net::ready_keys(found)}, ""};
  Value endpoints = azure["endpoints"];
  endpoints.set("resource", endpoints.text("storage_resource", "https://storage.azure.com"));
  net::azure::AzAccount account;
  account.tenant = azure.text("tenant");
  account.subscription = azure.text("subscription");
  return net::azure::key_chain(setup.loop, endpoints, std::move(account));
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> AzureStore::open(const ObjectUrl& url, const StoreSetup& setup, const Value& azure,
                                                      const std::string& endpoint) {
  RILLE_TRY(const WebPlace place,
            web_place(endpoint.empty() ? fmt::format("https://{}.blob.core.windows.net", url.account) : endpoint));
  RestSetup own;
  own.provider = "azure";
  own.read_error = read_xml_error;
  own.sign = sign_azure_request;
  std::unique_ptr<AzureStore> store(new AzureStore(url, setup, std::move(own), azure_chain(setup, azure, url)));
  store->web_ = place.scheme;
  store->host_ = place.host;
  // As with the emulators: a host that is an address cannot name the account.
  if (is_address(place.host)) store->base_ = "/" + url.account;
  store->shared_key_ = !net::environment("AZURE_STORAGE_KEY").empty();
  store->sas_ = !store->shared_key_ && !net::environment("AZURE_STORAGE_SAS_TOKEN").empty();
  return std::unique_ptr<ObjectStore>(std::move(store));
}

Traits AzureStore::traits() const {
  Traits out;
  out.part_bytes_min = 1;
  out.part_bytes_max = std::int64_t{4000} << 20;
  out.parts_max = 50'000;
  out.put_bytes_max = std::int64_t{5000} << 20;
  return out;
}

net::Parts AzureStore::container_parts(const char* method) const {
  net::Parts parts;
  parts.method = method;
  parts.scheme = web_;
  parts.host = host_;
  parts.path = base_ + "/" + url_.bucket;
  return parts;
}

net::Parts AzureStore::object_parts(const char* method, const std::string& key, const std::string& version) const {
  net::Parts parts = container_parts(method);
  parts.path += "/" + net::encode_path(key);
  if (!version.empty()) parts.set_header("If-Match", version);
  return parts;
}

Async<ListPage> AzureStore::list(ListRequest request, CancelToken token) {
  const auto list_parts = [this, request] {
    net::Parts parts = container_parts("GET");
    parts.query = {{"restype", "container"},
                   {"comp", "list"},
                   {"maxresults", std::to_string(std::clamp(request.count_max, 1, 5000))}};
    if (!request.prefix.empty()) parts.query.emplace_back("prefix", request.prefix);
    if (!request.delimiter.empty()) parts.query.emplace_back("delimiter", request.delimiter);
    if (!request.token.empty()) parts.query.emplace_back("marker", request.token);
    return parts;
  };
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(call_of("list", request.prefix, list_parts), token));
  co_return read_azure_list(answer.body);
}

Async<std::string> AzureStore::put(std::string key, Body body, PutRequest request, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  const auto put_parts = [this, key, request] {
    net::Parts parts = object_parts("PUT", key, "");
    parts.set_header("x-ms-blob-type", "BlockBlob");
    parts.set_header("Content-Type", request.content_type.empty() ? "application/octet-stream" : request.content_type);
    set_condition(parts, request);
    return parts;
  };
  Call call = conditional(call_of("put", key, put_parts), request);
  call.body = &body;
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(std::move(call), token));
  co_return version_in(answer);
}

// Azure has no call that begins an upload. Its name is random, and part of each block's name, so that two uploads of a
// key do not mix; it also keeps the content type for the end.
Async<std::string> AzureStore::begin_parts(std::string key, std::string content_type, CancelToken) {
  RILLE_CO_CHECK(check_key(key));
  co_return random_hex(12) + (content_type.empty() ? "" : "|" + content_type);
}

Async<Part> AzureStore::put_part(std::string key, std::string upload, int number, Body body, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  Part part;
  part.number = number;
  part.mark = block_id(upload.substr(0, upload.find('|')), number);
  part.size_bytes = body.bytes();
  const auto block_parts = [this, key, mark = part.mark] {
    net::Parts parts = object_parts("PUT", key, "");
    parts.query = {{"comp", "block"}, {"blockid", mark}};
    return parts;
  };
  Call call = call_of("put part", key, block_parts);
  call.body = &body;
  RILLE_CO_CHECK(co_await rest_.send(std::move(call), token));
  co_return part;
}

Async<std::string> AzureStore::complete_parts(std::string key, std::string upload, std::vector<Part> parts,
                                              PutRequest request, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.number < b.number; });
  const std::size_t bar = std::min(upload.find('|'), upload.size());
  std::string xml = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
  for (const Part& part : parts) xml += "<Latest>" + block_id(upload.substr(0, bar), part.number) + "</Latest>";
  xml += "</BlockList>";
  const std::string type = bar < upload.size() ? upload.substr(bar + 1) : "application/octet-stream";
  const auto complete = [this, key, request, xml, type] {
    net::Parts all = object_parts("PUT", key, "");
    all.query = {{"comp", "blocklist"}};
    all.set_header("Content-Type", "application/xml");
    all.set_header("x-ms-blob-content-type", type);
    set_condition(all, request);
    all.body = xml;
    return all;
  };
  std::int64_t bytes = 0;
  for (const Part& part : parts) bytes += part.size_bytes;
  ObjectInfo info;
  RILLE_CO_TRY(const auto answer, co_await send_end(call_of("complete", key, complete), key, bytes, info, token));
  co_return answer ? version_in(*answer) : std::move(info.version);
}

// A key to sign addresses with, which Azure lends to an identity for at most a week.
Async<net::DelegationKey> AzureStore::delegation_key(std::int64_t to_wall_us, CancelToken token) {
  if (lent_until_us_ >= to_wall_us) co_return lent_;
  const std::int64_t from_us = rest_.now_us() - sas_back_s * second_us;
  const std::int64_t until_us = std::max(to_wall_us, rest_.now_us() + delegation_lasts_s * second_us);
  const auto ask = [this, from_us, until_us] {
    net::Parts parts = container_parts("POST");
    parts.path = base_ + "/";
    parts.query = {{"restype", "service"}, {"comp", "userdelegationkey"}};
    parts.set_header("Content-Type", "application/xml");
    parts.body = fmt::format("<KeyInfo><Start>{}</Start><Expiry>{}</Expiry></KeyInfo>", format_utc(from_us),
                             format_utc(until_us));
    return parts;
  };
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(call_of("sign", "", ask), token));
  const auto field = [&answer](const char* name) { return text_in_xml(answer.body, name); };
  net::DelegationKey out{field("SignedOid"),     field("SignedTid"),     field("SignedStart"), field("SignedExpiry"),
                         field("SignedService"), field("SignedVersion"), field("Value")};
  if (out.value.empty()) co_return bad_answer("it has no user delegation key");
  lent_ = out;
  lent_until_us_ = until_us;
  co_return out;
}

Async<Presigned> AzureStore::presign(PresignRequest request, CancelToken token) {
  RILLE_CO_CHECK(check_key(request.key));
  if (request.expires_s < 1 || request.expires_s > 604'800)
    co_return make_error(ErrorKind::invalid, fmt::format("an address cannot be signed for {} s", request.expires_s),
                         "from 1 s to 604800 s, which is a week");
  if (sas_)
    co_return make_error(ErrorKind::auth, "presign: AZURE_STORAGE_SAS_TOKEN cannot sign addresses",
                         "set AZURE_STORAGE_KEY, or sign in: az login");
  const bool put = request.method == Method::put;
  net::SasOf of;
  of.account = url_.account;
  of.container = url_.bucket;
  of.key = request.key;
  of.rights = put ? "cw" : "r";
  of.from_wall_us = rest_.now_us() - sas_back_s * second_us;
  of.to_wall_us = rest_.now_us() + request.expires_s * second_us;
  of.https_only = web_ == "https";
  net::Parts parts = object_parts(put ? "PUT" : "GET", request.key, "");
  Presigned out;
  out.expires_wall_us = of.to_wall_us;
  if (!request.upload.empty())
    parts.query = {{"comp", "block"},
                   {"blockid", block_id(request.upload.substr(0, request.upload.find('|')), request.part)}};
  else if (put) out.headers = {{"x-ms-blob-type", "BlockBlob"}};
  net::Query sas;
  if (shared_key_) {
    RILLE_CO_TRY(const net::FoundKeys found, co_await rest_.keys(token));
    RILLE_CO_TRY(sas, net::azure_sas(of, found.keys.secret));
  } else {
    RILLE_CO_TRY(const net::DelegationKey lent, co_await delegation_key(of.to_wall_us, token));
    RILLE_CO_TRY(sas, net::azure_sas(of, lent));
  }
  parts.query.insert(parts.query.end(), sas.begin(), sas.end());
  out.url = parts.url();
  co_return out;
}

}  // namespace rille::objects
