#include "runtime/workflow/agent/install.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "runtime/core/base/build_id.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/loop/command.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"

namespace rille::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t look_timeout_ms = 60'000, send_timeout_ms = 30 * 60'000;
constexpr int none_there = 70, wrong_build = 71, unsafe_folder = 72;  // exit codes of the scripts; 255 is ssh's own
constexpr int altered = 73, lacks_program = 74;

// Asking a program for its identity executes it, and on a shared host another user could have put one at that path. So
// `ours PATH` is true where only this user and root can change the path: it and every folder above it belong to one of
// the two, and no other may write there (a sticky folder like /tmp protects the entries of others; the group of this
// user alone counts as the user).
constexpr const char* ours_script = R"sh(
user=$(id -u) group=0
[ "$(id -gn)" != "$(id -un)" ] || group=$(id -g)
ours() {
  path=$(readlink -f -- "$1") || return 1
  while [ "$(find "$path" -prune \( -user "$user" -o -user 0 \) \( \( ! -perm -020 -o -group "$group" -o -group 0 \) \
      ! -perm -002 -o -type d -perm -1000 \) 2>/dev/null)" ]; do
    [ "$path" != / ] || return 0
    path=${path%/*}; path=${path:-/}
  done
  return 1
}
home="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rille"
)sh";

// What a program or an installed bundle is compared by before anything of it is executed. The manifest is a line for
// each value (cmake/bundle.py), so sed makes of it what sha256sum reads. `same FOLDER SHA256`: it is the bundle that
// has this manifest, and its bin and lib have no other file; elsewhere users may have put some. Without sha256sum
// nothing compares as equal.
constexpr const char* same_script = R"sh(
export LC_ALL=C
digest() { sum=$(sha256sum <"$1") && echo "${sum%% *}"; }
rows() {
  sed -n -e '/^ *"path": "/{s/^[^:]*: "\(.*\)",*$/\1/;h;}' \
    -e '/^ *"sha256": "/{s/^[^:]*: "\(.*\)",*$/\1/;G;s/\n/  /;p;}' MANIFEST.json
}
same() (
  [ "$2" ] && cd "$1" 2>/dev/null && [ "$(digest MANIFEST.json 2>/dev/null)" = "$2" ] || exit 1
  rows | sha256sum -c >/dev/null 2>&1 || exit 1
  [ "$(find bin lib ! -type d 2>/dev/null | wc -l)" -eq "$(rows | sed -n '/^[0-9a-f]*  \(bin\|lib\)\//p' | wc -l)" ]
)
)sh";

// A shell script that looks for an installed Rille. $1: the wanted identity; $2: the SHA-256 of the manifest of the
// bundle that the runner would send, or ""; $3: the runner's own program, which may be on this machine too, or ""; $4:
// its SHA-256. The same sources with other CUDA kernels have another identity. A runner without CUDA kernels gives only
// the build as its identity, and accepts any program of that build.
constexpr const char* look_script = R"sh(
answers() {
  case $("$1" agent install 2>/dev/null) in "$build" | "$build"-*) echo "$1"; exit 0 ;; esac
}
build=$1
[ "$3" ] && ours "$3" && [ "$(digest "$3" 2>/dev/null)" = "$4" ] && answers "$3"
ours "$home/$build/bin/rille" && same "$home/$build" "$2" && answers "$home/$build/bin/rille"
exit 70)sh";

// A shell script that unpacks the bundle's archive, which it reads from standard input. $1: the wanted identity; $2:
// the SHA-256 of the manifest that the runner has read; $3: the release key that signed it, or "". Files that the
// manifest does not name are refused too: the loader prefers lib/glibc-hwcaps/ to lib/. Of the archive's modes only the
// owner's count. The signature is checked once more where openssl knows Ed25519 (3.0 and later); it says "Verification
// Failure" only then. What is installed there already and is not the same is replaced.
constexpr const char* unpack_script = R"sh(
set -e
umask 077
fits() { case $("$2/bin/rille" agent install) in "$1" | "$1"-*) ;; *) return 1 ;; esac; }
altered() { echo "$1" >&2; exit 73; }
checked() {
  cd "$1" 2>/dev/null || altered "it is empty"
  found=$(digest MANIFEST.json) || altered "it has no MANIFEST.json"
  [ "$found" = "$2" ] || altered "its MANIFEST.json is another one than the runner has read"
  sums=$(rows)
  said=$(echo "$sums" | sha256sum -c 2>/dev/null) || altered "$(echo "$said" | grep -v ': OK$' | head -n 1)"
  foreign=$(find . ! -type d ! -type f | head -n 1)
  [ -z "$foreign" ] || altered "$foreign is neither a file nor a folder"
  signature=0; [ ! -e MANIFEST.sig ] || signature=1
  [ "$(find . -type f | wc -l)" -eq $(($(echo "$sums" | wc -l) + 1 + signature)) ] ||
    altered "it has files that its manifest does not name"
  chmod -R go-w,a-s .
  [ "$3" ] || return 0
  printf '%s\n' '-----BEGIN PUBLIC KEY-----' "$3" '-----END PUBLIC KEY-----' >../key
  case $(openssl pkeyutl -verify -pubin -inkey ../key -rawin -in MANIFEST.json -sigfile MANIFEST.sig 2>&1) in
    *"Verification Failure"*) altered "its signature does not fit its manifest" ;;
  esac
}
for program in tar gzip sed find sha256sum; do
  command -v $program >/dev/null || { echo "it has no $program" >&2; exit 74; }
done
new="$home/.new-$1-$$"
mkdir -p "$home"
ours "$home" || { echo "other users can change $home" >&2; exit 72; }
rm -rf "$new"
mkdir "$new"
trap 'rm -rf "$new"' EXIT
gzip -dc | tar xf - -C "$new"
for folder in "$new"/*/; do break; done
(checked "$folder" "$2" "$3")
fits "$1" "$folder" || exit 71
same "$home/$1" "$2" || { mv -T "$home/$1" "$new/replaced" 2>/dev/null || :; }
mv -T "$folder" "$home/$1" 2>/dev/null || same "$home/$1" "$2"
echo "$home/$1/bin/rille")sh";

// A shell script that checks an archive, $1, and prints the beginning of what is in it. The manifest is there:
// bundle.py and pack() put it before the large files.
constexpr const char* head_script = R"sh(gzip -t -- "$1" && gzip -dc -- "$1" | head -c 1048576)sh";
constexpr const char* peek_script = R"sh(gzip -dc -- "$1" 2>/dev/null | head -c 1048576)sh";  // the same, unchecked

Async<CommandResult> run_there(Loop& loop, const ChannelSpec& channel, std::vector<std::string> words,
                               CommandOptions options, CancelToken token) {
  options.argv = channel.command(words);
  co_return co_await run_command(loop, std::move(options), token);
}

Error failed(const CommandResult& result, const ChannelSpec& channel, const char* doing) {
  const std::string said = result.last_words();
  Error e = make_error(ErrorKind::network, fmt::format("{} failed with {}", doing, result.status.text()),
                       said.empty() ? "it printed nothing" : "its output: " + said);
  e.resource = channel.directory;
  return std::move(e).with_retry();
}

std::string first_line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

// The path of the bundle's archive: the given one, $RILLE_BUNDLE, or one next to the program (in a build folder).
std::string archive_here(const InstallOptions& options) {
  if (!options.archive.empty()) return options.archive;
  if (const char* named = std::getenv("RILLE_BUNDLE"); named && *named) return named;
  std::error_code ignored;
  for (const fs::directory_entry& file : fs::directory_iterator(fs::path(options.self_exe).parent_path(), ignored)) {
    const std::string name = file.path().filename();
    if (name.starts_with("rille-") && name.ends_with("-linux-x86_64.tar.gz")) return file.path();
  }
  return "";
}

// Packs the bundle that this program was started from: what its manifest names, and not what a user has put beside it.
Async<std::string> pack(Loop& loop, std::string bundle, std::string cache, std::string build, CancelToken token) {
  RILLE_CO_TRY(const BundleManifest manifest, manifest_in_folder(bundle));
  const std::string digest = sha256_hex(manifest.text + manifest.signature).substr(0, 16);  // as signed, or not
  const std::string path = fmt::format("{}/rille-{}-{}.tar.gz", cache, build, digest);
  if (fs::exists(path)) co_return path;
  RILLE_CO_TRY(const std::vector<BundleFile> files, files_of(manifest, bundle));
  std::error_code error;
  fs::create_directories(cache, error);
  const fs::path folder(bundle);
  const std::string inside = folder.filename().string() + "/";
  CommandOptions tar;
  tar.argv = {"tar", "czf", path + ".new", "-C", folder.parent_path(), inside + "MANIFEST.json"};
  if (!manifest.signature.empty()) tar.argv.push_back(inside + "MANIFEST.sig");
  for (const BundleFile& file : files) tar.argv.push_back(inside + file.path);
  tar.timeout_ms = send_timeout_ms;
  RILLE_CO_TRY(const CommandResult done, co_await run_command(loop, std::move(tar), token));
  if (!done.ok())
    co_return make_error(ErrorKind::io, fmt::format("packing '{}' failed with {}", bundle, done.status.text()),
                         "its output: " + done.last_words());
  fs::rename(path + ".new", path, error);
  if (error) co_return errno_error("make", path, error.value());
  co_return path;
}

// The instance compares the archive with these before it unpacks it.
struct Expected {
  std::string sha256;  // of the manifest
  std::string key;     // that signed it; "": none has to
};

Async<Expected> check_archive(Loop& loop, std::string archive, std::vector<ReleaseKey> keys, CancelToken token) {
  CommandOptions head;
  head.argv = {"sh", "-c", head_script, "sh", archive};
  head.timeout_ms = send_timeout_ms;
  RILLE_CO_TRY(const CommandResult done, co_await run_command(loop, std::move(head), token));
  if (!done.ok())
    co_return make_error(ErrorKind::integrity, fmt::format("the bundle '{}' is damaged", archive),
                         "fetch it or make it again: ./bootstrap bundle; it was said: " + done.last_words())
        .with_resource(archive);
  RILLE_CO_TRY(const BundleManifest manifest, manifest_in_tar(done.out, archive));
  RILLE_CO_CHECK(files_of(manifest, archive));
  Expected out{sha256_hex(manifest.text), ""};
  if (!keys.empty()) {
    RILLE_CO_TRY(const ReleaseKey signer, signer_of(manifest, keys, archive));
    out.key = signer.text;
  }
  co_return out;
}

// Why the archive was not unpacked on the instance.
Error not_unpacked(const CommandResult& there, const ChannelSpec& channel, const std::string& archive) {
  const std::string said = there.last_words();
  switch (there.status.code) {
    case wrong_build:
      return make_error(
          ErrorKind::config,
          fmt::format("the bundle '{}' (the archive that was installed) has another build than this "
                      "program, or cannot run on the instance",
                      archive),
          said.empty() ? "build it again: cmake --build build/release --target bundle" : "it said: " + said);
    case unsafe_folder:
      return make_error(ErrorKind::config, "Rille cannot be installed on the instance: " + said,
                        "give the account a home folder of its own there");
    case lacks_program:
      return make_error(ErrorKind::config, "Rille cannot be installed on the instance: " + said,
                        "install it there, or use an image that has it");
    case altered:
      return make_error(ErrorKind::integrity,
                        fmt::format("the bundle '{}' is not what its manifest names: {}", archive, said),
                        "nothing of it was executed; fetch it or make it again: ./bootstrap bundle")
          .with_resource(archive);
    default: return failed(there, channel, "bringing Rille to the instance");
  }
}

// Where a runner notes the manifest's SHA-256 of the bundle of this build that was installed last.
std::string sent_file(const InstallOptions& options, const std::string& build) {
  return fmt::format("{}/sent-{}", options.cache, build);
}

// The SHA-256 of the manifest that an installed bundle must have: of the bundle that would be sent, or else of the one
// that was sent last. "": not known, or no trusted key has signed it.
Async<std::string> manifest_known(Loop& loop, InstallOptions options, std::string build, CancelToken token) {
  const std::string archive = archive_here(options), bundle = bundle_folder();
  std::optional<BundleManifest> manifest;
  if (!archive.empty()) {
    CommandOptions peek;
    peek.argv = {"sh", "-c", peek_script, "sh", archive};
    peek.timeout_ms = look_timeout_ms;
    const auto done = co_await run_command(loop, std::move(peek), token);
    if (auto read = manifest_in_tar(done ? done->out : "", archive); read) manifest = std::move(*read);
  } else if (!bundle.empty()) {
    if (auto read = manifest_in_folder(bundle); read) manifest = std::move(*read);
  }
  if (manifest && !options.keys.empty() && !signer_of(*manifest, options.keys, archive)) co_return std::string();
  if (manifest) co_return sha256_hex(manifest->text);
  const auto sent = store::read_file(sent_file(options, build), 64);
  co_return sent && !options.cache.empty() ? *sent : std::string();
}

// Sends the bundle and unpacks it on the instance.
Async<std::vector<std::string>> bring(Loop& loop, ChannelSpec channel, InstallOptions options, std::string build,
                                      CancelToken token) {
  std::string archive = archive_here(options);
  if (const std::string bundle = bundle_folder(); archive.empty() && !bundle.empty()) {
    RILLE_CO_TRY(archive, co_await pack(loop, bundle, options.cache, build, token));
  }
  if (archive.empty())
    co_return make_error(
        ErrorKind::config,
        "the instance lacks this build of Rille, and this program has no bundle (its installable archive) to send",
        "run the bundle's rille, or name its archive in RILLE_BUNDLE; `cmake --build build/release "
        "--target bundle` makes it");
  std::error_code error;
  const auto total = static_cast<std::int64_t>(fs::file_size(archive, error));
  if (error) co_return errno_error("read", archive, error.value());
  RILLE_CO_TRY(const Expected expected, co_await check_archive(loop, archive, options.keys, token));
  CommandOptions send;
  send.input_file = archive;
  send.timeout_ms = send_timeout_ms;
  if (options.progress) send.progress = [tell = options.progress, total](std::int64_t sent) { tell(sent, total); };
  std::vector<std::string> unpack{
      "sh", "-c", std::string(ours_script) + same_script + unpack_script, "sh", build, expected.sha256, expected.key};
  RILLE_CO_TRY(const CommandResult there, co_await run_there(loop, channel, unpack, std::move(send), token));
  if (!there.ok()) co_return not_unpacked(there, channel, archive);
  // The next runner, which may have no bundle, knows what is installed there. A failure costs another transfer only.
  fs::create_directories(options.cache, error);
  if (!error) (void)store::write_file_atomic(sent_file(options, build), expected.sha256, 0600);
  co_return std::vector<std::string>{first_line_of(there.out), "agent"};
}

}  // namespace

Async<std::vector<std::string>> install(Loop& loop, ChannelSpec channel, InstallOptions options, CancelToken token) {
  const std::string build = options.identity.empty() ? std::string(build_id()) : options.identity;
  RILLE_CO_TRY(const std::string manifest, co_await manifest_known(loop, options, build, token));
  auto own = [path = options.self_exe] { return store::fingerprint_file(path, true); };
  const auto program = co_await thread_job(loop, std::move(own));
  std::vector<std::string> look{"sh", "-c",  std::string(ours_script) + same_script + look_script,
                                "sh", build, manifest};
  look.push_back(program ? options.self_exe : "");
  look.push_back(program ? program->sha256 : "");
  CommandOptions asked;
  asked.timeout_ms = look_timeout_ms;
  RILLE_CO_TRY(const CommandResult found, co_await run_there(loop, channel, look, std::move(asked), token));
  if (found.ok()) co_return std::vector<std::string>{first_line_of(found.out), "agent"};
  if (found.status.code != none_there) co_return failed(found, channel, "looking for Rille on the instance");
  auto brought = co_await bring(loop, channel, std::move(options), build, token);
  if (brought) co_return std::move(*brought);
  Error e = std::move(brought).error();
  if (e.kind == ErrorKind::config || e.kind == ErrorKind::integrity || e.kind == ErrorKind::io) e.code = not_installed;
  co_return e;
}

}  // namespace rille::agent
