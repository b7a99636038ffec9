#include "runtime/core/net/sign/jwt.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <memory>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::net {

std::string to_base64url(std::string_view bytes) {
  std::string out = to_base64(bytes);
  std::replace(out.begin(), out.end(), '+', '-');
  std::replace(out.begin(), out.end(), '/', '_');
  out.erase(std::min(out.find('='), out.size()));
  return out;
}

Result<std::string> sign_rs256(std::string_view text, const std::string& key_pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(
      BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())), BIO_free);
  // Gives no passphrase. Without a callback OpenSSL would ask for it at the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(memory.get(), nullptr, no_passphrase, nullptr), EVP_PKEY_free);
  if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_RSA)
    return make_error(ErrorKind::auth, "the private key is not an unencrypted RSA key in PEM",
                      "download a new key file: its private_key begins with -----BEGIN PRIVATE KEY-----");
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::string signature(static_cast<std::size_t>(EVP_PKEY_get_size(key.get())), '\0');
  std::size_t bytes = signature.size();
  const bool ok = EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
                  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &bytes,
                                 reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  if (!ok)
    return make_error(ErrorKind::internal, "OpenSSL could not sign with the RSA key",
                      "download a new key file; if that fails too, this is a bug of Rille: please report it");
  signature.resize(bytes);
  return signature;
}

Result<std::string> sign_jwt(std::string_view header_json, std::string_view claims_json, const std::string& key_pem) {
  const std::string text = to_base64url(header_json) + "." + to_base64url(claims_json);
  RILLE_TRY(const std::string signature, sign_rs256(text, key_pem));
  return text + "." + to_base64url(signature);
}

}  // namespace rille::net
