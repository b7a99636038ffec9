#include "runtime/workflow/provider/cloud/ssh_keys.hpp"

#include <openssl/evp.h>

#include <memory>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/net/sign/parts.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/secret.hpp"

namespace rille::provider::cloud {

namespace {

// These functions write OpenSSH's private key format, documented in openssh-portable's PROTOCOL.key.
void put_number(std::string& out, std::uint32_t n) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(n >> shift);
}
void put_text(std::string& out, const std::string& text) {
  put_number(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

std::string public_half(const std::string& seed) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(seed.data()), 32),
      EVP_PKEY_free);
  std::string out(32, '\0');
  std::size_t bytes = out.size();
  EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(out.data()), &bytes);
  return out;
}

std::string public_blob(const std::string& half) {
  std::string out;
  put_text(out, "ssh-ed25519");
  put_text(out, half);
  return out;
}

std::string armoured(const std::string& bytes) {
  const std::string text = to_base64(bytes);
  std::string out = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  for (std::size_t at = 0; at < text.size(); at += 70) out += text.substr(at, 70) + "\n";
  return out + "-----END OPENSSH PRIVATE KEY-----\n";
}

std::string bytes_of(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

}  // namespace

SshKey ssh_key_from(const std::string& seed, const std::string& comment) {
  const std::string half = public_half(seed), blob = public_blob(half);
  // the format wants a random number twice; a hash keeps the file reproducible
  const Digest check = sha256("check" + blob);
  std::string secret;
  for (int i = 0; i < 2; ++i) secret.append(reinterpret_cast<const char*>(check.data()), 4);
  put_text(secret, "ssh-ed25519");
  put_text(secret, half);
  put_text(secret, seed + half);
  put_text(secret, comment);
  for (char pad = 1; secret.size() % 8; ++pad) secret += pad;
  std::string whole("openssh-key-v1", 15);  // including the terminating zero
  put_text(whole, "none");
  put_text(whole, "none");
  put_text(whole, "");
  put_number(whole, 1);
  put_text(whole, blob);
  put_text(whole, secret);
  return {"ssh-ed25519 " + to_base64(blob) + " " + comment, armoured(whole)};
}

Result<SshKeys> SshKeys::open(std::string folder) {
  SshKeys out;
  out.folder_ = std::move(folder);
  RILLE_CHECK(store::make_directories(out.folder_ + "/known_hosts"));
  RILLE_TRY(out.secret_, installation_secret(out.folder_));
  const SshKey own = ssh_key_from(bytes_of(sha256(out.secret_ + "identity")), "rille");
  out.identity_file_ = out.folder_ + "/id_ed25519";
  out.public_line_ = own.public_line;
  RILLE_TRY(const std::string there, write_once(out.identity_file_, own.private_text));
  if (there != own.private_text) RILLE_CHECK(store::write_file_atomic(out.identity_file_, own.private_text, 0600));
  return out;
}

SshKey SshKeys::host_key(const std::string& tag) const {
  return ssh_key_from(net::hmac_sha256(secret_, "host " + tag), "rille-host");
}

Result<std::string> SshKeys::known_hosts(const std::string& tag, const std::string& alias) const {
  const std::string path = folder_ + "/known_hosts/" + derive_hex({"known", tag}, 16);
  const std::string key = host_key(tag).public_line;
  RILLE_CHECK(write_once(path, alias + " " + key.substr(0, key.rfind(' ')) + "\n"));
  return path;
}

}  // namespace rille::provider::cloud
