// A server's certificate for tests: its own authority, for 127.0.0.1 only, made anew in each process.
#pragma once

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <string>

struct ServerCertificate {
  SSL_CTX* context = nullptr;  // the caller frees it
  std::string pem;             // what a client trusts

  static ServerCertificate make() {
    ServerCertificate out;
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_set_pubkey(x, key);
    X509_NAME* name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("rille test"), -1, -1,
                               0);
    X509_set_issuer_name(x, name);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(x, key, EVP_sha256());
    out.context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(out.context, x);
    SSL_CTX_use_PrivateKey(out.context, key);
    BIO* written = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(written, x);
    char* text = nullptr;
    long size = BIO_get_mem_data(written, &text);
    out.pem.assign(text, static_cast<std::size_t>(size));
    BIO_free(written);
    X509_free(x);
    EVP_PKEY_free(key);
    return out;
  }
};
