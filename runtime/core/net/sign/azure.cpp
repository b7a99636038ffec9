#include "runtime/core/net/sign/azure.hpp"

#include <algorithm>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::net {

namespace {

Result<std::string> azure_mac(const std::string& key, const std::string& text) {
  const Result<std::string> raw = from_base64(key);
  if (!raw || raw->empty())
    return make_error(ErrorKind::auth, "the key of the Azure storage account is not base64",
                      "copy it from `az storage account keys list`");
  return to_base64(hmac_sha256(*raw, text));
}

std::string canonical_resource(const Parts& parts, const std::string& account) {
  std::string out = "/" + account + parts.path;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [name, value] : parts.query) pairs.emplace_back(lower_case(name), value.value_or(""));
  std::sort(pairs.begin(), pairs.end());
  for (const auto& [name, value] : pairs) out += "\n" + name + ":" + value;
  return out;
}

std::string blob_resource(const SasOf& of) { return "/blob/" + of.account + "/" + of.container + "/" + of.key; }

// The lines that follow the identity in both kinds of SAS: addresses, protocol, version, resource, snapshot,
// encryption scope and five headers of the answer; those unused are empty.
std::string sas_end(const SasOf& of) {
  return std::string("\n") + (of.https_only ? "https" : "https,http") + "\n" + azure_storage_version +
         "\nb\n\n\n\n\n\n\n";
}

Query sas_query(const SasOf& of) {
  Query out{{"sv", azure_storage_version}};
  if (of.from_wall_us > 0) out.emplace_back("st", format_utc(of.from_wall_us));
  out.insert(out.end(), {{"se", format_utc(of.to_wall_us)},
                         {"sr", "b"},
                         {"sp", of.rights},
                         {"spr", of.https_only ? "https" : "https,http"}});
  return out;
}

std::string sas_begin(const SasOf& of) {
  return of.rights + "\n" + (of.from_wall_us > 0 ? format_utc(of.from_wall_us) : "") + "\n" +
         format_utc(of.to_wall_us) + "\n" + blob_resource(of) + "\n";
}

}  // namespace

Result<Parts> sign_azure_blob(Parts parts, const Credentials& who, std::int64_t wall_us, std::int64_t body_bytes) {
  parts.set_header("x-ms-date", http_date(wall_us));
  const auto value = [&](std::string_view name) {
    const std::string* found = parts.find_header(name);
    return found ? trimmed(*found) : std::string();
  };
  std::string text = parts.method + "\n" + value("content-encoding") + "\n" + value("content-language") + "\n" +
                     (body_bytes > 0 ? std::to_string(body_bytes) : "") + "\n" + value("content-md5") + "\n" +
                     value("content-type") + "\n\n" + value("if-modified-since") + "\n" + value("if-match") + "\n" +
                     value("if-none-match") + "\n" + value("if-unmodified-since") + "\n" + value("range") + "\n";
  Canonical own = canonical_headers(parts);
  std::erase_if(own, [](const auto& header) { return !header.first.starts_with("x-ms-"); });
  text += header_lines(own) + canonical_resource(parts, who.id);
  RILLE_TRY(const std::string signature, azure_mac(who.secret, text));
  parts.set_header("Authorization", "SharedKey " + who.id + ":" + signature);
  return parts;
}

Result<Query> azure_sas(const SasOf& of, const std::string& account_key) {
  RILLE_TRY(const std::string signature, azure_mac(account_key, sas_begin(of) + "\n" + sas_end(of)));
  Query out = sas_query(of);
  out.emplace_back("sig", signature);
  return out;
}

Result<Query> azure_sas(const SasOf& of, const DelegationKey& lent) {
  const std::string identity = lent.object_id + "\n" + lent.tenant_id + "\n" + lent.start + "\n" + lent.expiry + "\n" +
                               lent.service + "\n" + lent.version + "\n\n\n\n";
  RILLE_TRY(const std::string signature, azure_mac(lent.value, sas_begin(of) + identity + sas_end(of)));
  Query out = sas_query(of);
  out.insert(out.end(), {{"skoid", lent.object_id},
                         {"sktid", lent.tenant_id},
                         {"skt", lent.start},
                         {"ske", lent.expiry},
                         {"sks", lent.service},
                         {"skv", lent.version},
                         {"sig", signature}});
  return out;
}

}  // namespace rille::net
