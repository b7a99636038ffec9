#include "runtime/workflow/agent/signed_bundle.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"

namespace rille::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t manifest_bytes_max = 1 << 20, keys_bytes_max = 1 << 16;
// What an Ed25519 public key begins with (RFC 8410), before its 32 bytes.
constexpr std::string_view ed25519("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr std::size_t key_bytes = 44;

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

bool fits(const ReleaseKey& key, const BundleManifest& manifest) {
  const std::string der = from_base64(key.text).value();
  const auto bytes = [](const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); };
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pkey(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes(der) + ed25519.size(), der.size() - ed25519.size()),
      EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  const bool ok = pkey && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, pkey.get()) == 1 &&
                  EVP_DigestVerify(context.get(), bytes(manifest.signature), manifest.signature.size(),
                                   bytes(manifest.text), manifest.text.size()) == 1;
  ERR_clear_error();  // else the next TLS connection of this thread would report it
  return ok;
}

Error no_bundle(const std::string& bundle, const std::string& why) {
  return make_error(ErrorKind::integrity, fmt::format("'{}' is not a whole bundle of Rille: {}", bundle, why),
                    "fetch it or make it again: ./bootstrap bundle")
      .with_resource(bundle);
}

}  // namespace

std::string release_keys_file() {
  const std::string folder = config_folder();
  return folder.empty() ? "" : folder + "/release_keys";
}

Result<std::vector<ReleaseKey>> parse_release_keys(std::string_view text, const std::string& shown) {
  std::vector<ReleaseKey> out;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#' || line.starts_with("-----")) continue;
    const auto der = from_base64(line);
    if (!der || der->size() != key_bytes || !der->starts_with(ed25519))
      return make_error(ErrorKind::config, fmt::format("line {} of {} is not an Ed25519 public key", number, shown),
                        "a key is what `openssl pkey -in KEY.pem -pubout` prints");
    out.push_back({std::string(line), sha256_hex(*der).substr(0, 16)});
  }
  return out;
}

Result<std::vector<ReleaseKey>> release_keys() { return release_keys_of(RILLE_RELEASE_KEYS, release_keys_file()); }

Result<std::vector<ReleaseKey>> release_keys_of(std::string built_in, const std::string& file) {
  std::replace(built_in.begin(), built_in.end(), ',', '\n');
  RILLE_TRY(std::vector<ReleaseKey> keys, parse_release_keys(built_in, "RILLE_RELEASE_KEYS"));
  std::error_code error;
  const bool there = !file.empty() && fs::exists(file, error);
  if (error) return errno_error("read", file, error.value());
  if (!there) return keys;
  RILLE_TRY(const std::string text, store::read_file(file, keys_bytes_max));
  RILLE_TRY(const std::vector<ReleaseKey> more, parse_release_keys(text, "'" + file + "'"));
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

std::string ids_of(const std::vector<ReleaseKey>& keys) {
  std::string out;
  for (const ReleaseKey& key : keys) out += (out.empty() ? "" : ", ") + key.id;
  return out;
}

Result<BundleManifest> manifest_in_tar(std::string_view tar, const std::string& bundle) {
  constexpr std::size_t block = 512, size_at = 124, size_digits = 11;
  BundleManifest out;
  while (tar.size() >= block && tar.front() != '\0') {
    const std::string name(tar.data(), ::strnlen(tar.data(), 100)), digits(tar.substr(size_at, size_digits));
    const std::size_t size = std::strtoul(digits.c_str(), nullptr, 8);
    tar.remove_prefix(block);
    if (size > tar.size()) break;
    if (name.ends_with("/MANIFEST.json")) out.text = tar.substr(0, size);
    if (name.ends_with("/MANIFEST.sig")) out.signature = tar.substr(0, size);
    tar.remove_prefix(std::min((size + block - 1) / block * block, tar.size()));
  }
  if (out.text.empty()) return no_bundle(bundle, "it has no MANIFEST.json");
  return out;
}

Result<BundleManifest> manifest_in_folder(const std::string& folder) {
  BundleManifest out;
  RILLE_TRY(out.text, store::read_file(folder + "/MANIFEST.json", manifest_bytes_max));
  const std::string file = folder + "/MANIFEST.sig";
  if (access(file.c_str(), F_OK) == 0) { RILLE_TRY(out.signature, store::read_file(file, keys_bytes_max)); }
  return out;
}

Result<std::vector<BundleFile>> files_of(const BundleManifest& manifest, const std::string& bundle) {
  const Result<Value> value = Value::from_json(manifest.text);
  const Value::Array* rows = value ? (*value)["files"].as_array() : nullptr;
  std::vector<BundleFile> out;
  for (const Value& row : rows ? *rows : Value::Array()) out.push_back({row.text("path"), row.text("sha256")});
  if (out.empty()) return no_bundle(bundle, "its MANIFEST.json names no files");
  return out;
}

Result<ReleaseKey> signer_of(const BundleManifest& manifest, const std::vector<ReleaseKey>& trusted,
                             const std::string& bundle) {
  for (const ReleaseKey& key : trusted)
    if (fits(key, manifest)) return key;
  const Result<Value> value = Value::from_json(manifest.text);
  const std::string named = value ? value->text("signed_by") : "";
  const bool known = std::any_of(trusted.begin(), trusted.end(), [&](const ReleaseKey& k) { return k.id == named; });
  std::string why = "it is not signed";
  if (known) why = "its manifest or signature was altered after the key " + named + " signed it";
  else if (!manifest.signature.empty()) why = "it is signed by another key, " + (named.empty() ? "unnamed" : named);
  return make_error(
             ErrorKind::integrity,
             fmt::format("the bundle '{}' is refused: {}; trusted release keys: {}", bundle, why, ids_of(trusted)),
             fmt::format("take the release's own bundle; or, for a bundle of yours, sign it "
                         "(RILLE_SIGNING_KEY=KEY.pem ./bootstrap bundle) and add your public key to {}",
                         release_keys_file()))
      .with_resource(bundle);
}

Result<> check_files(const BundleManifest& manifest, const std::string& folder) {
  RILLE_TRY(const std::vector<BundleFile> files, files_of(manifest, folder));
  std::set<std::string> named;
  for (const BundleFile& file : files) {
    named.insert(file.path);
    const auto found = store::fingerprint_file(folder + "/" + file.path, true);
    if (!found) return no_bundle(folder, "its file " + file.path + " cannot be read");
    if (found->sha256 != file.sha256) return no_bundle(folder, "its file " + file.path + " was altered");
  }
  for (const char* part : {"/bin", "/lib"}) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder + part, error)) {
      const std::string path = entry.path().string().substr(folder.size() + 1);
      if (!entry.is_directory(error) && !named.contains(path))
        return no_bundle(folder, "its manifest does not name " + path);
    }
  }
  return success();
}

}  // namespace rille::agent
