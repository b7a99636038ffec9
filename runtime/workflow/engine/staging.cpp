// box:stage: what an address or a path means, and how it gets to the machine. pulling.cpp moves the files.
#include "runtime/workflow/engine/staging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/net/loopback.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/core/net/server.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/transfer/store_files.hpp"

namespace rille::engine {

namespace {

bool is_web(const std::string& from) { return from.starts_with("http://") || from.starts_with("https://"); }

std::string last_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Without the query and fragment, which may hold a signature.
std::string plain_address(const std::string& from) {
  return is_web(from) ? from.substr(0, from.find_first_of("?#")) : from;
}

// For messages.
std::string shown_source(const std::string& from) { return is_web(from) ? net::shown_address(from) : from; }

bool on_loopback(const std::string& web_address) {
  const Result<net::Server> server = net::server_of(web_address);
  return server && net::is_loopback_host(server->host);
}

Error not_for(const char* option, const std::string& from, const char* what, const char* hint) {
  return make_error(ErrorKind::invalid, fmt::format("box:stage: {}, but '{}' is {}", option, from, what), hint);
}

// The path on the instance. A target that ends in '/' ("data/") is a folder: a single file keeps its name in it, and a
// source folder's contents are copied. `local`: the source on this machine. Error `invalid`: a URL without a file name.
Result<std::string> place_of(const std::string& from, const std::string& local, const std::string& to) {
  std::error_code ec;
  if (!to.ends_with('/') || std::filesystem::is_directory(local, ec)) return to;
  std::string name = from.substr(0, std::min(from.size(), from.find_first_of("?#")));
  const std::size_t scheme = from.find("://");
  if (scheme == std::string::npos) name = from;
  else if (name.find('/', scheme + 3) == std::string::npos) name.clear();
  name = last_name_of(name);
  if (!name.empty()) return to + name;
  return make_error(
      ErrorKind::invalid,
      fmt::format("'{}' has no file name, so the file to be made in '{}' has none", shown_source(from), to),
      fmt::format("add a name: box:stage(address, \"{}NAME\")", to));
}

// Whether the options fit what the source is.
Result<> check_kind(const Staging& s, bool folder) {
  const std::string from = shown_source(s.from);
  if (folder && s.choices.unpack)
    return not_for("unpack = true", from, "a folder", "unpack is for one archive: leave it out, or name the archive");
  if (folder && !s.choices.sha256.empty() && s.tree.empty())
    return not_for("sha256 is given", from, "a folder", "sha256 is for single files: leave it out");
  if (!folder && s.choices.mirror)
    return not_for("mirror = true", from, "one file",
                   "mirror is for folders: leave it out, or end the address with \"/\" for the objects below it");
  return success();
}

// The archive's place on the machine.
Result<std::string> archive_of(const Staging& s, std::string name) {
  if (!transfer::is_path_below(name)) name = "archive";
  return s.unpack_folder() + "/" + name;
}

}  // namespace

std::string folder_named(const std::string& to) {
  std::string out = std::filesystem::path(to).lexically_normal().string();
  while (out.ends_with('/')) out.pop_back();
  return out.empty() && !to.starts_with('/') ? "." : out;
}

std::string Staging::key_of(std::size_t i) const {
  if (web()) return transfer::source_key(from);
  return sha256_hex(store->server() + "\n" + store->address(files[i].key));
}

std::string Staging::unpack_folder() const {
  const std::string folder_of_files = folder_named(to);
  return (folder_of_files == "." ? "" : folder_of_files) + ".unpack-" + derive_hex({from, to}, 8);
}

void Staging::begin() {
  done.resize(files.size());
  local.resize(files.size());
  total_bytes = 0;
  for (const transfer::PlannedFile& file : files)
    total_bytes = file.size_bytes < 0 || total_bytes < 0 ? -1 : total_bytes + file.size_bytes;
}

Async<Value> Calls::stage(std::string lease_id, std::string from, std::string to, Value options, CancelToken token) {
  RILLE_CO_TRY(const StagingPtr s, co_await plan_stage(lease_id, from, to, options, token));
  const Carry carry = [this, s](Move move, CancelToken t) {
    return transfer(s->lease, std::move(move), std::move(t), &s->generation);
  };
  const auto life = run_.life_.watch();
  RILLE_CO_TRY(Value moved, co_await carry_out(s, carry, token));
  if (life.ended()) co_return run_gone();
  run_.event("staged", Value(moved).set("to", s->choices.unpack ? to : s->target));
  co_return moved.set("generation", s->generation);
}

// Looks at the source, and decides which way it goes. Nothing is moved yet.
Async<Calls::StagingPtr> Calls::plan_stage(std::string lease_id, std::string from, std::string to, Value options,
                                           CancelToken token) {
  const auto s = std::make_shared<Staging>();
  s->lease = lease_id;
  s->from = from;
  s->to = to;
  s->began_ns = run_.loop().clock().monotonic_ns();
  RILLE_CO_TRY(s->choices, read_stage_choices(options));
  RILLE_CO_TRY(const bool reads, connector_->reads_source(from, options));
  s->simulated = !reads;
  if (s->choices.mirror && folder_named(to) == ".")
    co_return make_error(ErrorKind::invalid, "box:stage: mirror = true would remove all other files of the work folder",
                         "stage to a folder of its own, such as \"data/\"");
  RILLE_CO_TRY(const bool near, is_near(lease_id));
  if (s->simulated) {
    s->tree = from;
    s->target = to;
  } else if (objects::is_object_url(from)) {
    RILLE_CO_CHECK(co_await plan_objects(s, std::move(token)));
  } else if (is_web(from) && !near && !on_loopback(from)) {
    RILLE_CO_CHECK(plan_web(*s));
  } else {
    RILLE_CO_CHECK(co_await plan_local(s, std::move(token)));
  }
  s->begin();
  co_return s;
}

// Whether the lease's machine is this machine.
Result<bool> Calls::is_near(const std::string& lease_id) const {
  RILLE_TRY(const std::optional<lease::Lease> l, leases_->find(lease_id));
  return l && l->provider == "local";
}

// A path of this machine, or an address that this machine fetches.
Async<> Calls::plan_local(StagingPtr s, CancelToken token) {
  const bool file_url = s->from.starts_with("file://");
  if (s->choices.bytes_per_second_max && !is_web(s->from))
    co_return not_for("bandwidth is given", s->from, "on this machine",
                      "bandwidth limits what the instance fetches by itself: leave it out");
  // The copy that is made of file:// keeps what its source has no longer.
  const std::string from = s->choices.mirror && file_url ? transfer::path_of_file_url(s->from) : s->from;
  RILLE_CO_TRY(s->tree, co_await local_copy(from, s->choices.sha256, std::move(token)));
  std::error_code failed;
  RILLE_CO_CHECK(check_kind(*s, std::filesystem::is_directory(s->tree, failed)));
  if (s->choices.unpack) {
    RILLE_CO_TRY(s->target, archive_of(*s, last_name_of(plain_address(s->from))));
  } else {
    RILLE_CO_TRY(s->target, place_of(s->from, s->tree, s->to));
  }
  if (s->choices.mirror) s->target = folder_named(s->target);
  co_return success();
}

// An http(s) address that the instance fetches by itself.
Result<> Calls::plan_web(Staging& s) {
  RILLE_CHECK(check_kind(s, false));
  s.files.resize(1);
  if (!s.choices.unpack) {
    RILLE_TRY(s.target, place_of(s.from, "", s.to));
    return success();
  }
  RILLE_TRY(s.target, archive_of(s, last_name_of(plain_address(s.from))));
  return success();
}

Async<> Calls::plan_objects(StagingPtr s, CancelToken token) {
  RILLE_CO_TRY(s->url, objects::parse_object_url(s->from));
  RILLE_CO_TRY(s->store, transfer::open_users_store(s->url, run_.loop(), run_.limits_.may_connect));
  const auto life = run_.life_.watch();
  const bool asks_folder = s->to.ends_with('/') && !s->choices.unpack && s->choices.sha256.empty();
  RILLE_CO_TRY(transfer::FoundObjects found,
               co_await transfer::find_objects(*s->store, s->url.key, asks_folder, run_.limits_.memory, token));
  if (life.ended()) co_return run_gone();
  s->folder = found.folder;
  s->files = std::move(found.files);
  s->held = std::move(found.held);
  if (found.also_below)
    run_.event("warning", Value()
                              .set("what", "stage " + s->to)
                              .set("message", fmt::format("{0} is an object, which is staged, and there are objects "
                                                          "below {0}/: end the address with \"/\" for those",
                                                          s->store->address(s->url.key))));
  RILLE_CO_CHECK(check_kind(*s, s->folder));
  const std::string name = last_name_of(s->url.key);
  if (s->choices.unpack) {
    RILLE_CO_TRY(s->target, archive_of(*s, name));
  } else if (s->folder) {
    s->target = folder_named(s->to);
  } else {
    s->target = s->to;
    if (s->to.ends_with('/')) s->target += name;
  }
  co_return co_await choose_way(s, std::move(token));
}

// This machine fetches what is on a server of its own, and what its keys cannot sign addresses of.
Async<> Calls::choose_way(StagingPtr s, CancelToken token) {
  RILLE_CO_TRY(const bool near, is_near(s->lease));
  if (!near && on_loopback(s->store->server())) {
    s->why_here = s->store->server() + " is this machine";
    co_return success();
  }
  objects::PresignRequest request;
  request.key = s->files.front().key;
  const Result<objects::Presigned> signs = co_await s->store->presign(request, std::move(token));
  if (!signs && signs.error().kind != ErrorKind::auth) co_return signs.error();
  if (!signs) s->why_here = signs.error().message;
  co_return success();
}

// Returns the local path of the file or folder to stage. A URL is fetched into the cache of the home first.
Async<std::string> Calls::local_copy(std::string from, std::string sha256, CancelToken token) {
  bool web = is_web(from) || from.starts_with("file://");
  if (std::size_t scheme = from.find("://"); !web && scheme != std::string::npos && scheme < 8)
    co_return make_error(
        ErrorKind::invalid,
        fmt::format("cannot stage '{}': {}:// is not supported", net::shown_address(from), from.substr(0, scheme)),
        "use an address in a store (s3://, oss://, cos://, obs://, gs://, az://), http(s)://, "
        "file://, or a path");
  if (!web && sha256.empty()) {
    std::error_code ec;
    if (!std::filesystem::exists(from, ec))
      co_return make_error(ErrorKind::io, fmt::format("cannot stage '{}': there is no such file or folder", from),
                           fmt::format("paths are relative to {}", std::filesystem::current_path(ec).string()));
    RILLE_CO_CHECK(transfer::check_ends(from));
    co_return from;
  }
  if (!http_) http_ = std::make_unique<net::HttpClient>(run_.loop());
  transfer::StageOptions stage;
  stage.sha256 = sha256;
  stage.resumes_max = 3;  // few tries, so that an unreachable server is reported to the user within seconds
  stage.may_connect = run_.limits_.may_connect;
  stage.room = disk_room();
  stage.retry.attempts = 2;
  stage.retry.cap_ms = 2'000;
  stage.cache_directory = std::filesystem::path(run_.home()).parent_path().parent_path() / "cache";
  agent::TransferProgress shown = transfer_progress("fetch " + last_name_of(plain_address(from)));
  stage.progress = [shown](const transfer::Progress& p) { shown(p.done_bytes, p.total_bytes); };
  std::string destination = run_.home() + "/staged/" + derive_hex({from, sha256}, 16);
  co_return co_await fetch_once(std::move(from), std::move(destination), std::move(stage), std::move(token));
}

// Boxes that stage the same URL at the same time share one download. If the fiber that downloads is cancelled, the next
// one takes over.
Async<std::string> Calls::fetch_once(std::string from, std::string destination, transfer::StageOptions options,
                                     CancelToken token) {
  const auto life = run_.life_.watch();
  while (!downloads_.try_emplace(destination).second) {
    Future<Result<std::string>> fetched(run_.loop());
    downloads_[destination].push_back(fetched);
    auto registration = token.on_cancel([fetched](const Error& why) { fetched.set(why); });
    auto path = co_await fetched;
    if (life.ended() || token.cancelled() || path || path.error().kind != ErrorKind::cancelled) co_return path;
  }
  auto staged = co_await transfer::stage(*http_, std::move(from), destination, std::move(options), token);
  Result<std::string> path = staged ? Result<std::string>(staged->path) : Result<std::string>(staged.error());
  if (life.ended()) co_return path;
  const auto waiting = downloads_.extract(destination);
  for (const auto& waiter : waiting.mapped()) waiter.set(path);
  co_return path;
}

}  // namespace rille::engine
