// The rows of `rille doctor` about the bundle from which the command was started, and about release keys.
#include <fmt/format.h>

#include "bindings/cli/doctor.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/workflow/agent/signed_bundle.hpp"

namespace rille::cli {

namespace {

Check bundle_row(const std::string& folder, const std::vector<agent::ReleaseKey>& keys) {
  const auto failed = [](const Error& e) { return Check{"bundle", "warning", e.message, e.hint}; };
  const auto manifest = agent::manifest_in_folder(folder);
  if (!manifest) return failed(manifest.error());
  if (const auto whole = agent::check_files(*manifest, folder); !whole) return failed(whole.error());
  const std::string as_made = folder + ": its files are as its manifest says; ";
  if (!keys.empty()) {
    const auto signer = agent::signer_of(*manifest, keys, folder);
    if (!signer) return failed(signer.error());
    return {"bundle", "ok", as_made + "signed by the release key " + signer->id, ""};
  }
  const char* said =
      manifest->signature.empty() ? "not signed" : "no release key is trusted here to check its signature";
  return {"bundle", "ok", as_made + said, ""};
}

}  // namespace

void add_bundle(std::vector<Check>& checks) {
  const auto keys = agent::release_keys();
  if (const std::string folder = bundle_folder(); !folder.empty())
    checks.push_back(bundle_row(folder, keys ? *keys : std::vector<agent::ReleaseKey>()));
  if (!keys) checks.push_back({"release keys", "missing", keys.error().message, keys.error().hint});
  else if (keys->empty())
    checks.push_back({"release keys", "ok", "none: bundles are sent to machines without checking a signature", ""});
  else
    checks.push_back(
        {"release keys", "ok", agent::ids_of(*keys) + ": only bundles signed by one of them are sent to machines", ""});
}

}  // namespace rille::cli
