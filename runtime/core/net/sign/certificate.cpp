#include "runtime/core/net/sign/certificate.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>

#include "runtime/core/base/error.hpp"
#include "runtime/core/net/sign/jwt.hpp"

namespace rille::net {

namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
constexpr std::size_t certificates_max = 64;

struct Contents {
  Key key{nullptr, EVP_PKEY_free};
  std::vector<Certificate> certificates;
};

Bio reader(const std::string& bytes) {
  return {BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())), BIO_free};
}

// Gives OpenSSL the password. Without a callback OpenSSL would ask for it at the terminal.
int give_password(char* into, int size, int, void* password) {
  const auto& text = *static_cast<const std::string*>(password);
  if (text.empty() || text.size() > static_cast<std::size_t>(size)) return -1;
  std::memcpy(into, text.data(), text.size());
  return static_cast<int>(text.size());
}

Contents read_pem(const std::string& bytes, const std::string& password) {
  Contents out;
  out.key.reset(
      PEM_read_bio_PrivateKey(reader(bytes).get(), nullptr, give_password, const_cast<std::string*>(&password)));
  const Bio memory = reader(bytes);
  while (out.certificates.size() < certificates_max) {
    Certificate one(PEM_read_bio_X509(memory.get(), nullptr, give_password, const_cast<std::string*>(&password)),
                    X509_free);
    if (!one) break;
    out.certificates.push_back(std::move(one));
  }
  return out;
}

Contents read_pkcs12(const std::string& bytes, const std::string& password) {
  Contents out;
  const std::unique_ptr<PKCS12, decltype(&PKCS12_free)> store(d2i_PKCS12_bio(reader(bytes).get(), nullptr),
                                                              PKCS12_free);
  EVP_PKEY* key = nullptr;
  X509* own = nullptr;
  STACK_OF(X509)* others = nullptr;
  if (!store || PKCS12_parse(store.get(), password.c_str(), &key, &own, &others) != 1) return out;
  out.key.reset(key);
  if (own) out.certificates.emplace_back(own, X509_free);
  while (X509* one = sk_X509_shift(others)) out.certificates.emplace_back(one, X509_free);
  sk_X509_free(others);
  return out;
}

std::string der_of(const Certificate& certificate) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(certificate.get(), &bytes);
  if (size <= 0) return "";
  const std::string out(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return out;
}

std::string pem_of(const Key& key) {
  const Bio memory(BIO_new(BIO_s_mem()), BIO_free);
  if (PEM_write_bio_PrivateKey(memory.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) return "";
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return std::string(bytes, static_cast<std::size_t>(size));
}

}  // namespace

std::string ClientCertificate::thumbprint() const {
  if (chain.empty()) return "";
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(chain[0].data()), chain[0].size(), digest);
  return to_base64url({reinterpret_cast<char*>(digest), sizeof digest});
}

Result<ClientCertificate> read_certificate(const std::string& bytes, const std::string& password) {
  const bool pem = bytes.find("-----BEGIN") != std::string::npos;
  Contents got = pem ? read_pem(bytes, password) : read_pkcs12(bytes, password);
  ERR_clear_error();
  if (!got.key)
    return make_error(ErrorKind::auth,
                      std::string("there is no private key in ") + (pem ? "the PEM" : "PKCS #12") +
                          ", or the password does not match",
                      "the file needs the certificate and its private key, both in PEM, or in PKCS #12 (.pfx)");
  const auto own = std::find_if(got.certificates.begin(), got.certificates.end(), [&](const Certificate& one) {
    return X509_check_private_key(one.get(), got.key.get()) == 1;
  });
  ERR_clear_error();
  if (own == got.certificates.end())
    return make_error(ErrorKind::auth, "there is no certificate that belongs to the private key",
                      "the file needs the certificate and its private key, both in PEM, or in PKCS #12 (.pfx)");
  std::rotate(got.certificates.begin(), own, own + 1);
  ClientCertificate out;
  out.key_pem = pem_of(got.key);
  for (const Certificate& one : got.certificates) out.chain.push_back(der_of(one));
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(got.certificates[0].get()), &end) == 1)
    out.ends_wall_us = static_cast<std::int64_t>(timegm(&end)) * 1'000'000;
  return out;
}

}  // namespace rille::net
