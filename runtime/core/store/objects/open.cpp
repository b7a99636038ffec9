#include "runtime/core/store/objects/open.hpp"

#include <fmt/format.h>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/alibaba/keys.hpp"
#include "runtime/core/net/credentials/aws/keys.hpp"
#include "runtime/core/net/credentials/aws/profiles.hpp"
#include "runtime/core/net/credentials/aws/service.hpp"
#include "runtime/core/net/credentials/huawei/keys.hpp"
#include "runtime/core/net/credentials/tencent/keys.hpp"
#include "runtime/core/net/loopback.hpp"
#include "runtime/core/net/sign/alibaba.hpp"
#include "runtime/core/net/sign/aws.hpp"
#include "runtime/core/net/sign/huawei.hpp"
#include "runtime/core/net/sign/tencent.hpp"
#include "runtime/core/store/objects/az.hpp"
#include "runtime/core/store/objects/gs.hpp"

namespace rille::objects {

namespace {

constexpr std::int64_t cos_lasts_s = 900, cos_back_s = 60;

// What the address, the settings and the environment say of a store.
struct Told {
  ObjectUrl url;
  std::string endpoint;   // "": the cloud's own
  const Value& settings;  // of the provider
};

// The names under which the provider's settings and the clouds' own tools have a store's endpoint and region.
struct Names {
  const char *provider, *endpoint;
  const char* endpoint_variables[2];
  const char* region_variables[2];
};

Names names_of(const std::string& scheme) {
  if (scheme == "s3") return {"aws", "s3", {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, {}};
  if (scheme == "oss") return {"alibaba", "oss", {"OSS_ENDPOINT"}, {"OSS_REGION", "ALIBABA_CLOUD_REGION_ID"}};
  if (scheme == "cos") return {"tencent", "cos", {}, {"TENCENTCLOUD_REGION"}};
  if (scheme == "obs") return {"huawei", "obs", {}, {"HUAWEICLOUD_SDK_REGION", "HW_REGION_NAME"}};
  if (scheme == "gs") return {"gcp", "storage", {"STORAGE_EMULATOR_HOST"}, {}};
  return {"azure", "blob", {}, {}};
}

std::string first_variable(const char* const (&names)[2]) {
  for (const char* name : names)
    if (name)
      if (std::string value = net::environment(name); !value.empty()) return value;
  return "";
}

std::string first_region(const Value& regions) {
  if (const auto* list = regions.as_array(); list && !list->empty() && list->front().as_string())
    return *list->front().as_string();
  const auto* named = regions.as_object();
  return named && !named->empty() ? named->begin()->first : "";
}

Result<Told> told_of(const ObjectUrl& url, const StoreSetup& setup) {
  const Names names = names_of(url.scheme);
  Told told{url, url.endpoint, setup.settings[names.provider]};
  if (told.endpoint.empty()) told.endpoint = told.settings["endpoints"].text(names.endpoint);
  if (told.endpoint.empty()) told.endpoint = first_variable(names.endpoint_variables);
  if (!told.endpoint.empty() && told.endpoint.find("://") == std::string::npos)
    told.endpoint = (url.scheme == "gs" ? "http://" : "https://") + told.endpoint;
  const bool by_token = url.scheme == "gs" || url.scheme == "az";
  if (by_token && !url.endpoint.empty())
    return make_error(ErrorKind::invalid,
                      fmt::format("'{}': an address cannot choose the endpoint of {}://", url.text(), url.scheme),
                      fmt::format("a token would be sent there: put it into providers.json instead, "
                                  "{{\"{}\": {{\"endpoints\": {{\"{}\": \"..\"}}}}}}",
                                  names.provider, names.endpoint));
  if (told.url.region.empty()) told.url.region = first_variable(names.region_variables);
  if (told.url.region.empty() && url.scheme == "s3") told.url.region = net::aws::usual_region();
  if (told.url.region.empty()) told.url.region = first_region(told.settings["regions"]);
  if (told.url.region.starts_with("oss-")) told.url.region.erase(0, 4);
  if (told.url.region.empty() && !by_token)
    return make_error(ErrorKind::config, fmt::format("the region of {} is not known", url.root()),
                      fmt::format("add ?region=NAME to the address{}{}", names.region_variables[0] ? ", or set " : "",
                                  names.region_variables[0] ? names.region_variables[0] : ""));
  return told;
}

net::AwsScope aws_scope(const std::string& region, bool unsigned_payload) {
  net::AwsScope scope;
  scope.region = region;
  scope.service = "s3";
  scope.unsigned_payload = unsigned_payload;
  return scope;
}

void sign_as_aws(Dialect& dialect) {
  dialect.sign = [](net::Parts parts, const net::Credentials& who, const std::string& region, std::int64_t wall_us) {
    // A body that is read piece by piece is not in the parts; its hash is not known before it is sent.
    const bool unknown = parts.method == "PUT" && parts.body.empty();
    return net::sign_aws(std::move(parts), who, aws_scope(region, unknown), wall_us);
  };
  dialect.presign = [](net::Parts parts, const net::Credentials& who, const std::string& region, std::int64_t wall_us,
                       std::int64_t expires_s) {
    return net::presign_aws(std::move(parts), who, aws_scope(region, true), wall_us, expires_s);
  };
}

void sign_as_obs(Dialect& dialect) {
  dialect.sign = [](net::Parts parts, const net::Credentials& who, const std::string& region, std::int64_t wall_us) {
    return net::sign_obs(std::move(parts), who, region, wall_us);
  };
  dialect.presign = [](net::Parts parts, const net::Credentials& who, const std::string& region, std::int64_t wall_us,
                       std::int64_t expires_s) {
    return net::presign_obs(std::move(parts), who, region, wall_us, expires_s);
  };
}

void sign_as_oss(Dialect& dialect, const std::string& bucket) {
  // The bucket is signed in front of the path, unless it is in the path already.
  const auto scope = [bucket = dialect.bucket_in_path ? "" : bucket](const std::string& region) {
    net::OssScope out;
    out.region = region;
    out.bucket = bucket;
    return out;
  };
  dialect.sign = [scope](net::Parts parts, const net::Credentials& who, const std::string& region,
                         std::int64_t wall_us) { return net::sign_oss(std::move(parts), who, scope(region), wall_us); };
  dialect.presign = [scope](net::Parts parts, const net::Credentials& who, const std::string& region,
                            std::int64_t wall_us, std::int64_t expires_s) {
    return net::presign_oss(std::move(parts), who, scope(region), wall_us, expires_s);
  };
}

void sign_as_cos(Dialect& dialect) {
  dialect.sign = [](net::Parts parts, const net::Credentials& who, const std::string&, std::int64_t wall_us) {
    const std::int64_t now_s = wall_us / 1'000'000;
    return net::sign_cos(std::move(parts), who, now_s - cos_back_s, now_s + cos_lasts_s);
  };
  dialect.presign = [](net::Parts parts, const net::Credentials& who, const std::string&, std::int64_t wall_us,
                       std::int64_t expires_s) {
    const std::int64_t now_s = wall_us / 1'000'000;
    return net::presign_cos(std::move(parts), who, now_s - cos_back_s, now_s + expires_s);
  };
}

// Sets the store's host: the endpoint, or the cloud's own host. The bucket is a part of the host's name, but in the
// path if the endpoint is an IP address, or the scheme is s3.
Result<> place(Dialect& dialect, const Told& told) {
  if (told.endpoint.empty()) {
    const std::string scheme = told.url.scheme;
    // A dot in a bucket's name would make a host name that no certificate covers.
    dialect.bucket_in_path = scheme == "s3" && told.url.bucket.find('.') != std::string::npos;
    dialect.host = [scheme, in_path = dialect.bucket_in_path](const std::string& bucket, const std::string& region) {
      const std::string front = in_path ? "" : bucket + ".";
      if (scheme == "s3") return fmt::format("{}s3.{}.{}", front, region, net::aws::domain_of(region));
      if (scheme == "oss") return fmt::format("{}oss-{}.aliyuncs.com", front, region);
      if (scheme == "cos") return fmt::format("{}cos.{}.myqcloud.com", front, region);
      return fmt::format("{}obs.{}.{}", front, region, net::huawei::domain_of(region));
    };
    return success();
  }
  RILLE_TRY(const WebPlace at, web_place(told.endpoint));
  dialect.web = at.scheme;
  dialect.bucket_in_path = told.url.scheme == "s3" || is_address(at.host);
  dialect.host = [host = at.host, in_path = dialect.bucket_in_path](const std::string& bucket, const std::string&) {
    return in_path ? host : bucket + "." + host;
  };
  return success();
}

Dialect dialect_of(const Told& told) {
  Dialect out;
  out.scheme = told.url.scheme;
  out.provider = names_of(told.url.scheme).provider;
  out.marker_lists = out.scheme == "cos" || out.scheme == "obs";
  if (out.scheme == "oss" || out.scheme == "cos") {
    out.conditions = Dialect::Conditions::forbid_overwrite;
    out.traits.puts_if_match = out.traits.completes_if_match = false;
    out.traits.part_bytes_min = out.scheme == "oss" ? 100 << 10 : 1 << 20;
  } else if (out.scheme == "obs") {
    out.conditions = Dialect::Conditions::none;
    out.traits.puts_if_absent = out.traits.completes_if_absent = false;
    out.traits.puts_if_match = out.traits.completes_if_match = false;
    out.traits.part_bytes_min = 100 << 10;
  }
  return out;
}

net::CredentialChain chain_of(const Told& told, Loop& loop) {
  const Value& endpoints = told.settings["endpoints"];
  if (told.url.scheme == "oss") return net::alibaba::key_chain(loop, endpoints);
  if (told.url.scheme == "cos") return net::tencent::key_chain(loop, endpoints, told.url.region);
  if (told.url.scheme == "obs") return net::huawei::key_chain(loop, endpoints, told.url.region);
  return net::aws::key_chain(loop, endpoints, told.url.region);
}

}  // namespace

bool is_address(std::string_view host) {
  const bool v6 = host.starts_with('[');
  const std::string_view name = v6 ? host : host.substr(0, host.rfind(':'));
  return v6 || net::is_loopback_host(name) || name.find_first_not_of("0123456789.") == std::string_view::npos;
}

Result<WebPlace> web_place(const std::string& endpoint) {
  std::string text = endpoint;
  while (text.ends_with('/')) text.pop_back();
  const std::size_t end = text.find("://");
  WebPlace out;
  if (end != std::string::npos) out = {text.substr(0, end), text.substr(end + 3)};
  if ((out.scheme != "http" && out.scheme != "https") || out.host.empty() ||
      out.host.find_first_of("/@?# ") != std::string::npos)
    return make_error(ErrorKind::config, fmt::format("the endpoint '{}' is not http(s)://HOST[:PORT]", endpoint),
                      "correct it in providers.json or in the environment");
  return out;
}

const char* provider_of(const ObjectUrl& url) { return names_of(url.scheme).provider; }

Result<std::unique_ptr<ObjectStore>> open_store(const ObjectUrl& url, const StoreSetup& setup) {
  RILLE_TRY(const Told told, told_of(url, setup));
  const bool emulator =
      url.scheme == "gs" && told.settings["endpoints"].text("storage").empty() && !told.endpoint.empty();
  if (url.scheme == "gs" || url.scheme == "az") {
    if (!told.endpoint.empty()) {
      RILLE_TRY(const WebPlace at, web_place(told.endpoint));
      if (at.scheme == "http" && !is_address(at.host) && !emulator)
        return make_error(ErrorKind::config,
                          fmt::format("the endpoint {} of {} is plain http", told.endpoint, url.root()),
                          "a token would cross the network unencrypted: use https");
    }
    // The emulators that STORAGE_EMULATOR_HOST names ask for no keys; Google's libraries send none there.
    if (url.scheme == "gs") return GsStore::open(told.url, setup, told.settings, told.endpoint, !emulator);
    return AzureStore::open(told.url, setup, told.settings, told.endpoint);
  }
  Dialect dialect = dialect_of(told);
  RILLE_CHECK(place(dialect, told));
  if (url.scheme == "oss") sign_as_oss(dialect, url.bucket);
  else if (url.scheme == "cos") sign_as_cos(dialect);
  else if (url.scheme == "obs") sign_as_obs(dialect);
  else sign_as_aws(dialect);
  return std::unique_ptr<ObjectStore>(XmlStore::open(told.url, setup, std::move(dialect), chain_of(told, setup.loop)));
}

}  // namespace rille::objects
