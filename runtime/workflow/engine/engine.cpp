#include "runtime/workflow/engine/engine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "runtime/core/base/build_id.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/base/run_state.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/engine/simulation.hpp"
#include "runtime/workflow/provider/catalogue/cache.hpp"
#include "runtime/workflow/provider/local/local.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::engine {

namespace {

constexpr const char* run_columns =
    "SELECT id,script,mode,state,host,args,result,error,epoch,created_us,updated_us,ended_us,pid,cancel_reason,parent,"
    "forked_from,seed,tag,deadline_us,host_modules "
    "FROM runs ";

RunRow read_run(const store::Row& row) {
  RunRow r;
  r.id = row.text(0);
  r.script = row.text(1);
  r.mode = row.text(2);
  r.state = row.text(3);
  r.host = row.text(4);
  auto json = [&](int column) {
    Result<Value> v = row.null(column) ? Result<Value>(Value()) : Value::from_json(row.text(column));
    return v ? std::move(v).value() : Value();
  };
  r.args = json(5);
  r.result = json(6);
  if (!row.null(7)) r.error = error_from_value(json(7));
  r.epoch = row.integer(8);
  r.created_us = row.integer(9);
  r.updated_us = row.integer(10);
  r.ended_us = row.integer(11);
  r.pid = row.integer(12);
  r.tag = row.text(17);
  if (!row.null(13)) r.cancel_reason = error_from_value(json(13));
  r.parent = row.text(14);
  r.forked_from = row.text(15);
  r.seed = row.text(16);
  r.deadline_us = row.null(18) ? 0 : row.integer(18);
  r.host_modules = row.text(19);
  return r;
}

std::string host_name() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string_view mode_name(Mode mode) { return mode == Mode::session ? "session" : "durable"; }

// Refuses a home on a network file system, because SQLite's locks and WAL need a local disk (sqlite.org/wal.html).
Result<> refuse_network_disk(const std::string& home) {
  struct statfs fs {};
  if (statfs(home.c_str(), &fs) != 0) return errno_error("look at", home, errno);
  constexpr long nfs = 0x6969, smb2 = 0xFE534D42, cifs = 0xFF534D42;
  auto type = static_cast<unsigned long>(fs.f_type);
  if (type == nfs || type == smb2 || type == cifs)
    return make_error(ErrorKind::config, fmt::format("RILLE_HOME '{}' is on a network file system", home),
                      "set RILLE_HOME to a folder on a local disk");
  return {};
}

Error not_made(Error e, const char* variable) {
  const auto is = [&](int errno_value) { return e.code == fmt::format("errno {}", errno_value); };
  if (!is(ENOSPC) && !is(EDQUOT)) e.hint = fmt::format("{} names the folder; it must be a writable one", variable);
  return e;
}

// Whether the owner is an id that this system cannot map, from NFS or outside of a user namespace: it may be this user.
bool is_unmapped(uid_t owner) {
  const auto text = store::read_file("/proc/sys/kernel/overflowuid", 64);
  return text && fmt::format("{}\n", owner) == *text;
}

// Makes the folder if it is missing, for this user alone. `variable` is the one that names it.
Result<> take_folder(const std::string& folder, const char* variable) {
  if (Result<> made = store::make_private_directory(folder); !made) return not_made(made.error(), variable);
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0) return errno_error("look at", folder, errno);
  // Its owner decides what is run and released here. Root may use it: the mounted home of a container has its user.
  const uid_t own = geteuid();
  const bool unmapped = is_unmapped(info.st_uid) && faccessat(AT_FDCWD, folder.c_str(), W_OK, AT_EACCESS) == 0;
  if (info.st_uid != own && info.st_uid != 0 && own != 0 && !unmapped)
    return make_error(
        ErrorKind::config,
        fmt::format("the folder '{}' belongs to another user ({}), and this is user {}", folder, info.st_uid, own),
        fmt::format("let {0} name another folder; or take this one over, if you trust what is in it: "
                    "sudo chown -R {1} '{2}'",
                    variable, own, folder));
  constexpr unsigned others_write = 022;
  if (chmod(folder.c_str(), 0700) != 0 && (info.st_mode & others_write))
    return make_error(
        ErrorKind::config,
        fmt::format("other users may write into the folder '{}': it has mode {:04o}, which this user ({}) "
                    "cannot change",
                    folder, info.st_mode & 07777, own),
        fmt::format("let {0} name another folder; or give this one to the user: "
                    "sudo chown {1} '{2}' && sudo chmod 700 '{2}'",
                    variable, own, folder));
  return {};
}

// The installation's id, which the tags of its machines contain. The file is outside RILLE_HOME, so that a copied home
// does not give two installations one id, and a deleted home does not lose the id.
Result<std::string> install_id() {
  std::filesystem::path folder = installation_folder();
  std::filesystem::path file = folder / "install";
  RILLE_CHECK(take_folder(folder, "XDG_CONFIG_HOME"));
  int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EROFS) fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_error("open", file.string(), errno);
  flock(fd, LOCK_EX);
  char text[64] = {};
  ssize_t n = ::read(fd, text, sizeof text - 1);
  std::string id(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  if (id.size() != 12) {
    id = random_hex(6);
    std::string line = id + "\n";
    if (ftruncate(fd, 0) != 0 || pwrite(fd, line.data(), line.size(), 0) < 0 || fsync(fd) != 0) {
      int e = errno;
      close(fd);
      return errno_error("write", file.string(), e);
    }
  }
  close(fd);
  return id;
}

}  // namespace

// Redacts URLs in the run's arguments, because they may contain passwords and signatures.
Value RunRow::shown_args() const {
  Value shown = args;
  if (Value::Object* named = shown.as_object())
    for (auto& [name, value] : *named)
      if (const std::string* text = value.as_string(); text && text->find("://") != std::string::npos)
        value = net::redact_url(*text);
  return shown;
}

Value RunRow::to_value() const {
  Value v;
  v.set("id", id).set("script", script).set("mode", mode).set("state", state).set("args", shown_args());
  v.set("created", format_utc(created_us));
  if (deadline_us) v.set("deadline", format_utc(deadline_us));
  if (!parent.empty()) v.set("parent", parent);
  if (!forked_from.empty()) v.set("forked_from", forked_from);
  if (pid > 0 && !ended_us) v.set("process", pid);
  if (ended_us) v.set("ended", format_utc(ended_us)).set("seconds", static_cast<double>(ended_us - created_us) / 1e6);
  if (!tag.empty()) v.set("tag", tag);
  if (!result.is_null()) v.set("result", result);
  if (error) v.set("error", error_to_value(*error));
  return v;
}

Result<std::unique_ptr<Engine>> Engine::open_in_memory(Loop& loop, EngineOptions options) {
  std::unique_ptr<Engine> engine(new Engine(loop, std::move(options)));
  engine->locks_ = &engine->held_;
  engine->blobs_.reset();
  RILLE_TRY(std::shared_ptr<store::Db> disk, store::Journal::make_disk());
  engine->journal_ = store::Journal::in_memory(loop, std::move(disk));
  engine->registry_ = std::make_unique<provider::Registry>();
  engine->leases_ = std::make_unique<lease::Manager>(loop, *engine->journal_, *engine->registry_, random_hex(6));
  engine->pools_ = std::make_unique<Pools>(loop, *engine->journal_,
                                           [e = engine.get()](const std::string& run) { return e->alive(run); });
  engine->alerts_ = std::make_unique<Alerts>(loop, *engine->journal_, engine->options_.mail);
  return engine;
}

Result<std::unique_ptr<Engine>> Engine::open(Loop& loop, EngineOptions options) {
  if (options.home == in_memory_home) return open_in_memory(loop, std::move(options));
  if (options.home.empty())
    return make_error(ErrorKind::config, "there is no folder for the state: HOME is not set",
                      "RILLE_HOME names the folder where all state is kept; it must be a writable one");
  RILLE_CHECK(take_folder(options.home, "RILLE_HOME"));
  std::error_code ec;
  std::filesystem::create_directories(options.home + "/runs", ec);
  if (ec) return not_made(errno_error("make the folder", options.home, ec.value()), "RILLE_HOME");
  RILLE_CHECK(refuse_network_disk(options.home));
  std::unique_ptr<Engine> engine(new Engine(loop, std::move(options)));
  RILLE_TRY(engine->journal_, store::Journal::open(loop, engine->options_.home + "/journal.db"));
  RILLE_TRY(std::string install, install_id());
  engine->registry_ = std::make_unique<provider::Registry>();
  provider::LocalOptions local;
  local.root = engine->options_.home;

  RILLE_CHECK(engine->registry_->add(provider::make_local_provider(loop, std::move(local))));
  if (const std::string& settings = engine->options_.providers_file; !settings.empty()) {
    RILLE_TRY(auto made, provider::make_providers(loop, settings, engine->options_.home));
    for (auto& one : made) RILLE_CHECK(engine->registry_->add(std::move(one)));
  }
  engine->leases_ = std::make_unique<lease::Manager>(loop, *engine->journal_, *engine->registry_, install);
  RILLE_TRY(provider::OfferSettings told, provider::read_offer_settings(engine->options_.providers_file));
  engine->leases_->queries().set_rates(std::move(told.rates));
  engine->leases_->queries().set_gpu_use(engine->options_.gpu_use);
  engine->leases_->queries().set_disk_prices(std::move(told.disk_prices));
  engine->pools_ = std::make_unique<Pools>(loop, *engine->journal_,
                                           [e = engine.get()](const std::string& run) { return e->alive(run); });
  engine->alerts_ = std::make_unique<Alerts>(loop, *engine->journal_, engine->options_.mail);
  return engine;
}

Engine::~Engine() = default;

bool Engine::alive(const std::string& id) const { return locks_ ? locks_->contains(id) : RunLock::held(run_home(id)); }

Result<> Engine::refuse_ended(const RunRow& row) {
  if (!run_has_ended(row.state)) return {};
  if (row.state == "removed")
    return make_error(ErrorKind::state, fmt::format("run {} has been removed: only its costs are kept", row.id),
                      fmt::format("see `rille cost {}`", row.id));
  return make_error(
      ErrorKind::state, fmt::format("run {} has ended: {}", row.id, row.state),
      fmt::format("see it with `rille show {0}`; go on from one of its entries with `rille fork {0} "
                  "--from KEY`",
                  row.id) +
          (row.mode == "durable" ? fmt::format(", or start a new one with `rille run {}`", row.script) : ""));
}

Result<> Engine::has_modules_of(const RunRow& row) const {
  std::string missing, name;
  for (std::istringstream names(row.host_modules); names >> name;)
    if (!host_modules_.contains(name)) missing += (missing.empty() ? "'" : ", '") + name + "'";
  if (missing.empty()) return {};
  return make_error(
      ErrorKind::state,
      fmt::format("run {} belongs to the program that started it, and uses its module {}", row.id, missing),
      fmt::format("resume it in that program, or in another that registers the module before; its machines end with "
                  "`rille gc --now {}`",
                  row.id));
}

Async<std::unique_ptr<Run>> Engine::start(RunSpec spec, RunHooks hooks) {
  RunRow row;
  row.id = spec.id.empty() ? new_run_id(loop_.clock().wall_us()) : spec.id;
  row.script = spec.script;
  row.mode = mode_name(spec.mode);
  row.args = spec.args;
  row.parent = spec.parent;
  row.tag = spec.tag;
  if (spec.parent.empty())  // scripts of child runs have no modules of the host program
    for (const std::string& name : host_modules_) row.host_modules += (row.host_modules.empty() ? "" : " ") + name;
  if (spec.deadline_ms > 0) row.deadline_us = loop_.clock().wall_us() + spec.deadline_ms * 1000;
  co_return co_await take(std::move(row), true, std::move(hooks));
}

Async<std::unique_ptr<Run>> Engine::resume(std::string id, RunHooks hooks) {
  RILLE_CO_TRY(RunRow row, run(id));
  if (Result<> may = refuse_ended(row); !may) {
    Error ended = std::move(may).error();
    if (row.state == "failed" && failed_at(row.id))
      ended.hint = fmt::format("try again what failed with `rille resume {} --retry-failed`; {}", row.id, ended.hint);
    co_return ended;
  }
  // The process that ran the run died, perhaps because the whole computer crashed, so check the journal first.
  if (row.state == "running") RILLE_CO_CHECK(journal_->check());
  co_return co_await take(std::move(row), false, std::move(hooks));
}

Async<std::unique_ptr<Run>> Engine::resume_with(std::string id, std::string script, RunHooks hooks) {
  RILLE_CO_TRY(RunRow row, run(id));
  RILLE_CO_CHECK(refuse_ended(row));
  if (row.mode != "durable")
    co_return make_error(ErrorKind::state, fmt::format("run {} is a session: it has no script", row.id),
                         "resume it without --with");
  if (row.state == "running") RILLE_CO_CHECK(journal_->check());
  co_return co_await take(std::move(row), false, std::move(hooks), std::move(script));
}

Async<std::unique_ptr<Run>> Engine::take(RunRow row, bool fresh, RunHooks hooks, std::string edited) {
  if (!fresh) RILLE_CO_CHECK(has_modules_of(row));
  RILLE_CO_TRY(RunLock lock, locks_ ? RunLock::take(*locks_, row.id) : RunLock::take(run_home(row.id), row.id));
  std::int64_t now = loop_.clock().wall_us();
  auto shared = std::make_shared<RunRow>(row);
  auto host = std::make_shared<std::string>(host_name());
  store::Journal::Write write = [shared, host, fresh, now](store::Db& db) -> Result<> {
    const RunRow& r = *shared;
    RILLE_CHECK(db.run("DELETE FROM permits WHERE run=?", {r.id}));  // permits of an earlier process
    if (!fresh)
      return db.run("UPDATE runs SET state='running', epoch=epoch+1, host=?, pid=?, updated_us=? WHERE id=?",
                    {*host, std::int64_t{getpid()}, now, r.id});
    std::string args = r.args.to_json();
    return db.run(
        "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid,parent,tag,deadline_us,"
        "host_modules) VALUES(?1,?2,?3,'running',1,?4,?5,?5,?6,?7,?8,"
        "CASE WHEN ?9='' THEN COALESCE((SELECT tag FROM runs WHERE id=?8),'') ELSE ?9 END,?10,?11)",
        {r.id, r.script, r.mode, args, now, *host, std::int64_t{getpid()}, r.parent, r.tag,
         r.deadline_us ? store::SqlValue(r.deadline_us) : store::SqlValue(), r.host_modules});
  };
  // Do not wait for a new session's row: a session is resumed only for its leases, whose rows are written after it.
  if (fresh && row.mode == "session") journal_->enqueue(std::move(write));
  else RILLE_CO_CHECK(co_await journal_->commit(std::move(write)));
  row.epoch = 1;
  bool died = row.state == "running";
  const std::int64_t last_us = row.updated_us;
  if (!fresh) {
    RILLE_CO_TRY(row, run(row.id));  // read the row again, now that no other process can change it
  }
  RunConfig config;
  config.id = row.id;
  config.script = edited.empty() ? row.script : edited;
  const bool in_memory = options_.home == in_memory_home;
  config.home = in_memory ? std::string(in_memory_home) : run_home(row.id);
  config.mode = row.mode == "session" ? Mode::session : Mode::durable;
  config.args = row.args;
  config.hooks = std::move(hooks);
  config.epoch = row.epoch;
  config.deadline_us = row.deadline_us;
  config.died = died;
  config.blobs = blobs_;
  config.self_exe = options_.self_exe;
  config.install_identity = options_.install_identity;
  config.connector = connector_;
  config.keeps_metrics = !locks_;
  config.lock = std::move(lock);
  config.engine = this;
  config.edited = std::move(edited);
  config.seed = row.seed;
  if (config.mode == Mode::durable) { RILLE_CO_TRY(config.number, run_number(journal_->reader(), row.id)); }
  Replay replay;
  if (!fresh) { RILLE_CO_TRY(replay, Replay::load(journal_->reader(), row.id, blobs_.get())); }
  auto run = std::make_unique<RunImpl>(loop_, std::move(config), journal_.get(), in_memory ? nullptr : leases_.get(),
                                       std::move(replay));
  if (!fresh && row.epoch > 1) {  // a scheduled run that now begins has epoch 1
    Value taken;
    taken.set("host", *host).set("process", std::int64_t{getpid()}).set("build", build_id()).set("died", died);
    if (died) taken.set("last_us", last_us);  // when the process that died last wrote that it lived
    run->event("resumed", std::move(taken));
  }
  co_return std::unique_ptr<Run>(std::move(run));
}

Result<std::vector<RunRow>> Engine::runs(int limit, bool with_children) const {
  std::vector<RunRow> out;
  const char* which = with_children ? "WHERE state<>'removed' ORDER BY created_us DESC LIMIT ?"
                                    : "WHERE parent='' AND state<>'removed' ORDER BY created_us DESC LIMIT ?";
  RILLE_CHECK(journal_->reader().query(std::string(run_columns) + which, {std::int64_t{limit}},
                                       [&](const store::Row& row) { out.push_back(read_run(row)); }));
  return out;
}

Result<std::vector<RunRow>> Engine::children(const std::string& run) const {
  std::vector<RunRow> out;
  RILLE_CHECK(journal_->reader().query(std::string(run_columns) + "WHERE parent=? AND parent<>'' ORDER BY created_us",
                                       {run}, [&](const store::Row& row) { out.push_back(read_run(row)); }));
  return out;
}

Result<std::optional<RunRow>> Engine::exactly(const std::string& id) const {
  std::optional<RunRow> out;
  RILLE_CHECK(journal_->reader().query(std::string(run_columns) + "WHERE id=?", {id},
                                       [&](const store::Row& row) { out = read_run(row); }));
  return out;
}

Result<RunRow> Engine::run(const std::string& id) const {
  std::vector<RunRow> found;
  auto add = [&](const store::Row& row) { found.push_back(read_run(row)); };
  if (id == "last") {
    RILLE_TRY(found, runs(1));
    if (found.empty()) return make_error(ErrorKind::invalid, "there is no run yet", "start one: rille run FILE");
    return found.front();
  }
  if (Result<std::optional<RunRow>> it = exactly(id); it && *it) return std::move(**it);
  // Finds runs whose id begins with `id`: ids hold only digits, letters, dots and dashes, which all sort before '~'.
  // Child runs must be named in full.
  RILLE_CHECK(journal_->reader().query(
      std::string(run_columns) + "WHERE id>=? AND id<? AND parent='' AND state<>'removed' ORDER BY id LIMIT 3",
      {id, id + "~"}, add));
  if (found.size() == 1 && !id.empty()) return std::move(found.front());
  if (found.size() > 1 && !id.empty())
    return make_error(
        ErrorKind::invalid,
        fmt::format("'{}' is the beginning of several run ids, e.g. {} and {}", id, found[0].id, found[1].id),
        "write more characters of the id");
  RILLE_TRY(std::vector<RunRow> known, runs(200));
  std::vector<std::string> ids;
  for (const RunRow& r : known) ids.push_back(r.id);
  std::string near = did_you_mean(id, ids);
  return make_error(ErrorKind::invalid, fmt::format("there is no run '{}'", id),
                    near.empty() ? "list the runs with `rille ps`" : fmt::format("did you mean {}?", near));
}

Result<std::vector<Value>> Engine::entries(const std::string& run) const {
  std::vector<Entry> rows;
  RILLE_CHECK(read_entries(journal_->reader(), run, nullptr, [&](Entry e) { rows.push_back(std::move(e)); }));
  std::sort(rows.begin(), rows.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.started_us, a.fiber, a.pos) < std::tie(b.started_us, b.fiber, b.pos);
  });
  std::vector<Value> out;
  for (Entry& row : rows) {
    Value e;
    e.set("key", key_of(row)).set("fiber", row.fiber).set("pos", row.pos).set("kind", row.kind).set("name", row.name);
    e.set("occurrence", row.occurrence).set("attempt", row.attempt).set("source", row.source);
    e.set("state", !row.completed() ? "started" : row.error ? "failed" : "done");
    e.set("started", format_utc(row.started_us)).set("started_us", row.started_us);
    if (!row.progress.is_null()) e.set("progress", row.progress);
    if (row.completed()) e.set("seconds", static_cast<double>(row.ended_us - row.started_us) / 1e6);
    if (row.error) e.set("error", error_to_value(*row.error));
    else if (!row.blob.empty()) e.set("file", blobs_->path(row.blob));
    else if (row.completed()) e.set("value", std::move(row.value));
    out.push_back(std::move(e));
  }
  return out;
}

Result<std::vector<Value>> Engine::events(const std::string& run) const {
  std::vector<Value> out;
  RILLE_CHECK(journal_->reader().query("SELECT at_us,data,run,hash FROM events WHERE run=?1 OR ?1='' ORDER BY id",
                                       {run}, [&](const store::Row& row) {
                                         Result<Value> v = Value::from_json(row.text(1));
                                         if (!v) return;
                                         v->set("at", format_utc(row.integer(0))).set("at_us", row.integer(0));
                                         v->set("run", row.text(2)).set("hash", row.text(3));
                                         out.push_back(std::move(*v));
                                       }));
  return out;
}

Result<std::map<std::string, std::string>> Engine::sources(const std::string& run) const {
  std::map<std::string, std::string> out;
  RILLE_CHECK(journal_->reader().query("SELECT module,content FROM sources JOIN blobs USING (sha256) WHERE run=?",
                                       {run}, [&](const store::Row& row) { out.emplace(row.text(0), row.text(1)); }));
  return out;
}

Async<> Engine::signal(std::string id, std::string name, Value payload) {
  Result<RunRow> found = run(id);
  if (!found) {  // a run that this process has just started may not be written yet
    RILLE_CO_CHECK(co_await journal_->commit([](store::Db&) { return success(); }));
    found = run(id);
  }
  RILLE_CO_TRY(RunRow row, std::move(found));
  RILLE_CO_CHECK(refuse_ended(row));
  auto text = std::make_shared<std::string>(payload.to_json());
  std::int64_t now = loop_.clock().wall_us();
  store::Journal::Write write = [run = row.id, name, text, now, message = random_hex(8)](store::Db& db) {
    return db.run("INSERT INTO inbox(run,name,message_id,payload,at_us) VALUES(?,?,?,?,?)",
                  {run, name, message, *text, now});
  };
  co_return co_await journal_->commit(std::move(write));
}

Async<> Engine::fail(std::string id, Error why) {
  if (of_journal(why)) {  // the journal failed, not the script: the run can be resumed
    store::Journal::Write write = [id, at = loop_.clock().wall_us()](store::Db& db) {
      return db.run("UPDATE runs SET state='suspended', updated_us=?, pid=0 WHERE id=?", {at, id});
    };
    co_return co_await journal_->commit(std::move(write));
  }
  std::string text = error_to_value(why).to_json();
  store::Journal::Write write = [id, text, at = loop_.clock().wall_us()](store::Db& db) {
    return db.run("UPDATE runs SET state='failed', error=?, ended_us=?, updated_us=?, pid=0 WHERE id=?",
                  {text, at, at, id});
  };
  co_return co_await journal_->commit(std::move(write));
}

Result<> Engine::suspend(Run& run) {
  std::int64_t now = loop_.clock().wall_us();
  journal_->enqueue([id = run.id(), now](store::Db& db) {  // suspends the run and its running child runs
    return db.run(
        "WITH RECURSIVE these(id) AS (SELECT ?2 UNION SELECT runs.id FROM runs JOIN these ON runs.parent=these.id) "
        "UPDATE runs SET state='suspended', updated_us=?1, pid=0 WHERE id IN these AND state='running'",
        {now, id});
  });
  return journal_->flush();
}

Result<bool> Engine::owes() const {
  RILLE_TRY(bool open, leases_->any_open());
  return open || !alerts_ ? Result<bool>(open) : alerts_->any_due();
}

Async<lease::ReapReport> Engine::reap(ReapSpec spec) {
  lease::ReapRequest request;
  request.alive = [this](const std::string& id) { return alive(id); };
  request.in_background = spec.in_background;
  request.only_due = spec.only_due;
  request.unknown = spec.unknown;
  if (!spec.now.empty()) {
    RILLE_CO_TRY(RunRow row, run(spec.now));
    if (alive(row.id)) {
      Error e = make_error(ErrorKind::state, fmt::format("run {} is being run by process {}", row.id, row.pid),
                           "stop that process first; `rille release` ends a lease under a living run");
      co_return e;
    }
    RILLE_CO_CHECK(journal_->reader().query(  // finds the run and all its child runs
        "WITH RECURSIVE these(id) AS (SELECT ?1 UNION SELECT runs.id FROM runs JOIN these ON runs.parent=these.id) "
        "SELECT id FROM these",
        {row.id}, [&](const store::Row& found) { request.now.insert(found.text(0)); }));
  }
  if (spec.in_background) {
    RILLE_CO_TRY(bool open, leases_->any_open());
    if (!open) {
      if (alerts_) RILLE_CO_CHECK(co_await alerts_->deliver());
      co_return lease::ReapReport();
    }
  }
  // Release machines before sending alerts, because machines cost money.
  RILLE_CO_TRY(lease::ReapReport report, co_await leases_->reaper().reap(std::move(request)));
  if (alerts_) RILLE_CO_CHECK(co_await alerts_->deliver());
  co_return report;
}

}  // namespace rille::engine
