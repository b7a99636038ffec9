// A bundle of three files as cmake/bundle.py makes it, with a release key of its own. Its program is a script that
// leaves a mark and prints a build.
#pragma once

#include <openssl/evp.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/id.hpp"

class TestKey {
 public:
  explicit TestKey(char seed)
      : key_(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes(std::string(32, seed)).data(), 32),
             EVP_PKEY_free) {
    REQUIRE(key_);
  }
  // As `openssl pkey -pubout -outform DER` gives it.
  std::string der() const {
    std::string raw(32, '\0');
    std::size_t size = raw.size();
    REQUIRE(EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(raw.data()), &size) == 1);
    return std::string("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12) + raw;
  }
  std::string id() const { return rille::sha256_hex(der()).substr(0, 16); }
  std::string pem() const {
    return "-----BEGIN PUBLIC KEY-----\n" + rille::to_base64(der()) + "\n-----END PUBLIC KEY-----\n";
  }
  std::string sign(const std::string& text) const {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    std::string out(64, '\0');
    std::size_t size = out.size();
    REQUIRE(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1);
    REQUIRE(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size,
                           reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1);
    return out;
  }

 private:
  static std::basic_string<unsigned char> bytes(const std::string& text) { return {text.begin(), text.end()}; }
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
};

class TestBundle {
 public:
  std::string folder;

  TestBundle(const std::string& place, const std::string& build, const std::string& mark)
      : folder(place + "/rille-1-linux-x86_64"), place_(place) {
    write("bin/rille", "#!/bin/sh\n: >" + mark + "\necho " + build + "\n");
    REQUIRE(::chmod((folder + "/bin/rille").c_str(), 0755) == 0);
    write("lib/libstdc++.so.6", "a library");
    write("docs/a page.md", "a page");
    describe();
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder + "/" + path).parent_path());
    std::ofstream(folder + "/" + path, std::ios::binary) << text;
  }
  std::string read(const std::string& path) const {
    std::ifstream file(folder + "/" + path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Writes the manifest of the files that are there; with a key, its signature.
  void describe(const TestKey* key = nullptr) const {
    std::string rows;
    for (const char* path : {"bin/rille", "docs/a page.md", "lib/libstdc++.so.6"})
      rows += std::string(rows.empty() ? "" : ",\n") + "  {\n   \"path\": \"" + path + "\",\n   \"size_bytes\": 1,\n" +
              "   \"sha256\": \"" + rille::sha256_hex(read(path)) + "\",\n   \"mode\": \"0644\"\n  }";
    const std::string by = key ? '"' + key->id() + '"' : "null";
    write("MANIFEST.json", "{\n \"format\": 1,\n \"signed_by\": " + by + ",\n \"files\": [\n" + rows + "\n ]\n}\n");
    if (key) write("MANIFEST.sig", key->sign(read("MANIFEST.json")));
  }
  // The archive of what is there now.
  std::string pack() const {
    const std::string archive = place_ + "/bundle.tar.gz";
    REQUIRE(std::system(
                ("cd " + place_ + " && LC_ALL=C tar czf bundle.tar.gz --sort=name rille-1-linux-x86_64").c_str()) == 0);
    return archive;
  }

 private:
  std::string place_;
};
