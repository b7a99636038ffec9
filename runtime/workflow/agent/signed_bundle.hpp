// What a bundle's MANIFEST.json and MANIFEST.sig say, and the release keys that a runner trusts
// (docs/design/bundle.md). The manifest names every file of the bundle with its SHA-256; MANIFEST.sig is the Ed25519
// signature of its bytes. Any thread; blocks on files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::agent {

struct ReleaseKey {
  std::string text;  // the line between the marks of `openssl pkey -pubout`
  std::string id;    // 16 hexadecimal digits: the beginning of the SHA-256 of the key
};

// The keys that were compiled in (RILLE_RELEASE_KEYS), and the keys in the file `release_keys` of config_folder(). If
// there are none, nothing has to be signed. Errors: io; config: a line is no key.
Result<std::vector<ReleaseKey>> release_keys();
// The same of other places; built_in has commas between the keys.
Result<std::vector<ReleaseKey>> release_keys_of(std::string built_in, const std::string& file);
// A key in each line. Lines that begin with '#' or '-----' are passed over, so PEM files may be joined. `shown`: the
// text's name in the error.
Result<std::vector<ReleaseKey>> parse_release_keys(std::string_view text, const std::string& shown);
std::string release_keys_file();
std::string ids_of(const std::vector<ReleaseKey>& keys);  // "1a2b.., 3c4d.."

struct BundleManifest {
  std::string text;       // the bytes of MANIFEST.json
  std::string signature;  // the bytes of MANIFEST.sig; "": not signed
};

struct BundleFile {
  std::string path, sha256;
};

// From the first bytes of the archive's tar, in which the manifest comes before the large files. `bundle` names the
// archive in the error. integrity: there is no manifest.
Result<BundleManifest> manifest_in_tar(std::string_view tar, const std::string& bundle);
Result<BundleManifest> manifest_in_folder(const std::string& folder);                        // io
Result<std::vector<BundleFile>> files_of(const BundleManifest&, const std::string& bundle);  // integrity

// The trusted key that signed the manifest. integrity: there is no signature, another key signed, or the manifest has
// changed since.
Result<ReleaseKey> signer_of(const BundleManifest& manifest, const std::vector<ReleaseKey>& trusted,
                             const std::string& bundle);

// Whether an unpacked bundle is as its manifest says. Its bin and lib hold no other file; elsewhere users may have put
// some. integrity: names the first file that is missing, altered or foreign.
Result<> check_files(const BundleManifest& manifest, const std::string& folder);

}  // namespace rille::agent
