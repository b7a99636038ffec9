// The runner's side of file transfers. Several chunks are requested at once, to use a channel with a long delay fully;
// disk access is on the thread pool.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/store/beneath.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/agent/client_state.hpp"
#include "runtime/workflow/agent/heard.hpp"

namespace rille::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t window = 4;  // most chunk requests in flight

struct LocalFile {
  std::string path;  // path relative to the transferred directory; "": the directory itself
  bool directory = false;
  std::int64_t size_bytes = 0;
};

Result<std::vector<LocalFile>> local_tree(const std::string& root) {
  std::vector<LocalFile> out;
  std::error_code error;
  if (!fs::exists(root, error)) return errno_error("put", root, ENOENT);
  if (!fs::is_directory(root))
    return std::vector<LocalFile>{{"", false, static_cast<std::int64_t>(fs::file_size(root, error))}};
  out.push_back({"", true, 0});
  for (fs::recursive_directory_iterator it(root + "/", error), end; !error && it != end; it.increment(error)) {
    std::string path = it->path().string().substr(root.size() + 1);
    if (it->is_directory() && !it->is_symlink()) out.push_back({path, true, 0});
    else if (it->is_regular_file()) out.push_back({path, false, static_cast<std::int64_t>(it->file_size())});
  }
  if (error) return errno_error("list", root, error.value());
  std::sort(out.begin(), out.end(), [](const LocalFile& a, const LocalFile& b) { return a.path < b.path; });
  return out;
}

Result<std::string> read_chunk(const std::string& path, std::int64_t offset, std::size_t size) {
  store::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("read", path, errno);
  std::string out(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    ssize_t n = pread(fd.get(), out.data() + done, size - done, offset + static_cast<std::int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("read", path, errno);
    if (n == 0)
      return make_error(ErrorKind::integrity, "'" + path + "' became shorter while it was sent to the machine",
                        "send it again, when no program writes to the file any more")
          .with_retry();
    done += static_cast<std::size_t>(n);
  }
  return out;
}

std::string part_suffix(const FileInfo& remote) { return ".part-" + remote.sha256.substr(0, 16); }

Result<> append_chunk(const store::FileBeneath& file, const std::string& part, std::int64_t offset,
                      std::string_view bytes) {
  RILLE_TRY(store::Fd fd, file.open(O_WRONLY | O_CREAT, part));
  if (ftruncate(fd.get(), offset) < 0 || lseek(fd.get(), offset, SEEK_SET) < 0)
    return errno_error("write", file.shown() + part, errno);
  return store::write_all(fd.get(), bytes, file.shown() + part);
}

// Renames the part file to its final name if its digest is right.
Result<> settle(const store::FileBeneath& file, const FileInfo& remote) {
  const std::string part = part_suffix(remote);
  RILLE_TRY(store::Fd fd, file.open(O_RDONLY, part));
  RILLE_TRY(auto found, store::fingerprint_fd(fd.get(), file.shown() + part, true));
  if (found.sha256 != remote.sha256) {
    file.remove(part);
    return make_error(ErrorKind::integrity,
                      fmt::format("'{}' arrived with SHA-256 {}, not {}", remote.path, found.sha256, remote.sha256),
                      "the file changed while it was fetched, or the channel damaged it; fetch it again")
        .with_retry();
  }
  if (fchmod(fd.get(), static_cast<mode_t>(remote.mode) | 0600) < 0 || fdatasync(fd.get()) < 0)
    return errno_error("write", file.shown() + part, errno);
  return file.replace_by(part);
}

// The offset at which a transfer continues; 0: from the start; -1: the file is already complete. Fails with `io` if the
// disk is too full.
Result<std::int64_t> reached(const store::FileBeneath& file, const FileInfo& remote) {
  const std::string part = part_suffix(remote);
  if (auto st = file.look(); st && st->st_size == remote.size_bytes)
    if (auto fd = file.open(O_RDONLY); fd)
      if (auto found = store::fingerprint_fd(fd->get(), file.shown(), true); found && found->sha256 == remote.sha256)
        return std::int64_t{-1};
  const auto st = file.look(part);
  const std::int64_t have = st && st->st_size <= remote.size_bytes ? st->st_size : 0;
  if (remote.size_bytes - have > file.free_bytes())
    return make_error(ErrorKind::io,
                      fmt::format("cannot get '{}': {} bytes are missing, but the disk of '{}' has only {} bytes free",
                                  remote.path, remote.size_bytes - have, file.shown(), file.free_bytes()),
                      "free some space on that disk, or get the file to another one");
  return have;
}

void add(Transfer& sum, const TransferProgress& progress, std::int64_t total, std::int64_t& done, std::int64_t bytes,
         bool moved) {
  done += bytes;
  if (moved) sum.moved_bytes += bytes;
  if (progress) progress(done, total);
}

}  // namespace

// Takes responses in the order of the requests, with at most `window` open requests. When destroyed, it forgets the
// open requests.
struct TicketWindow {
  std::function<void(std::int64_t)> forget;
  struct Open {
    std::int64_t id, bytes;
    Future<Result<Reply>> answer;
  };
  std::deque<Open> open;
  CancelToken token;
  CancelToken::Registration registration;
  TicketWindow(std::function<void(std::int64_t)> f, CancelToken t) : forget(std::move(f)), token(std::move(t)) {
    registration = token.on_cancel([this](const Error& why) {
      for (Open& o : open) o.answer.set(why);
    });
  }
  TicketWindow(const TicketWindow&) = delete;
  ~TicketWindow() {
    for (Open& o : open) forget(o.id);
  }
  static Async<Reply> first(TicketWindow& self) {
    Open head = self.open.front();
    if (self.token.cancelled()) head.answer.set(self.token.reason());
    auto reply = co_await head.answer;
    self.forget(head.id);
    self.open.pop_front();
    co_return reply;
  }
};

Async<> AgentClient::State::put_file(Self self, std::string local, std::string remote, Transfer& sum,
                                     TransferProgress progress, CancelToken token) {
  auto hash = [local] { return store::fingerprint_file(local, true); };
  RILLE_CO_TRY(auto print, co_await thread_job(self->loop, std::move(hash)));
  struct stat st {};
  ::stat(local.c_str(), &st);
  Value header;
  header.set("path", remote)
      .set("size", print.size_bytes)
      .set("sha256", print.sha256)
      .set("mode", static_cast<int>(st.st_mode & 0777));
  Value first = header;
  RILLE_CO_TRY(Reply begun, co_await request(self, "put_begin", std::move(first), std::string(), token));
  ++sum.files;
  sum.size_bytes += print.size_bytes;
  if (begun.value.boolean("have")) {
    if (progress) progress(print.size_bytes, print.size_bytes);
    co_return success();
  }
  TicketWindow tickets([self](std::int64_t id) { self->forget(id); }, token);
  std::int64_t sent = begun.value.integer("offset"), done = sent;
  if (sent < 0 || sent > print.size_bytes)
    co_return make_error(ErrorKind::integrity,
                         fmt::format("the machine has {} bytes of '{}', which has {}", sent, remote, print.size_bytes),
                         "the agent program there is damaged or hostile: release the machine");
  bool all_sent = false;
  while (!all_sent || !tickets.open.empty()) {
    if (!all_sent && tickets.open.size() < window) {
      auto size = static_cast<std::size_t>(std::min<std::int64_t>(chunk_bytes, print.size_bytes - sent));
      auto job = [local, sent, size] { return read_chunk(local, sent, size); };
      RILLE_CO_TRY(std::string bytes, co_await thread_job(self->loop, std::move(job)));
      Value chunk = header;
      chunk.set("offset", sent);
      RILLE_CO_TRY(Ticket ticket, self->ask("put", std::move(chunk), std::move(bytes)));
      tickets.open.push_back({ticket.id, static_cast<std::int64_t>(size), ticket.answer});
      sent += static_cast<std::int64_t>(size);
      all_sent = sent >= print.size_bytes;
      continue;
    }
    std::int64_t bytes = tickets.open.front().bytes;
    RILLE_CO_TRY(Reply reply, co_await TicketWindow::first(tickets));
    add(sum, progress, print.size_bytes, done, bytes, true);
  }
  co_return success();
}

Async<> AgentClient::State::get_file(Self self, FileInfo remote, std::string root, std::string path, Transfer& sum,
                                     TransferProgress progress, CancelToken token, Room room) {
  if (remote.sha256.empty())
    co_return make_error(ErrorKind::integrity, "the machine sent no SHA-256 of '" + remote.path + "'",
                         "the agent program there is damaged or of another build: release the machine, and rent again");
  RILLE_CO_TRY(auto opened, store::FileBeneath::at(root, path));
  const auto file = std::make_shared<store::FileBeneath>(std::move(opened));
  const std::string part = part_suffix(remote);
  auto look = [file, remote] { return reached(*file, remote); };
  RILLE_CO_TRY(std::int64_t done, co_await thread_job(self->loop, std::move(look)));
  ++sum.files;
  sum.size_bytes += remote.size_bytes;
  if (done < 0) {
    if (progress) progress(remote.size_bytes, remote.size_bytes);
    co_return success();
  }
  if (remote.size_bytes == 0) RILLE_CO_CHECK(append_chunk(*file, part, 0, ""));
  TicketWindow tickets([self](std::int64_t id) { self->forget(id); }, token);
  std::int64_t asked = done;
  while (asked < remote.size_bytes || !tickets.open.empty()) {
    if (asked < remote.size_bytes && tickets.open.size() < window) {
      std::int64_t size = std::min<std::int64_t>(chunk_bytes, remote.size_bytes - asked);
      Value header;
      header.set("path", remote.path).set("offset", asked).set("length", size);
      RILLE_CO_TRY(Ticket ticket, self->ask("get", std::move(header)));
      tickets.open.push_back({ticket.id, size, ticket.answer});
      asked += size;
      continue;
    }
    std::int64_t wanted = tickets.open.front().bytes;
    RILLE_CO_TRY(Reply reply, co_await TicketWindow::first(tickets));
    auto size = static_cast<std::int64_t>(reply.body.size());
    if (size != wanted)
      co_return make_error(ErrorKind::integrity,
                           "'" + remote.path + "' became shorter while it was fetched from the machine",
                           "get it again, when no program there writes to the file any more")
          .with_retry();
    if (room) RILLE_CO_CHECK(room(size));
    auto job = [file, part, done, bytes = std::move(reply.body)] { return append_chunk(*file, part, done, bytes); };
    RILLE_CO_CHECK(co_await thread_job(self->loop, std::move(job)));
    add(sum, progress, remote.size_bytes, done, size, true);
  }
  auto finish = [file, remote] { return settle(*file, remote); };
  co_return co_await thread_job(self->loop, std::move(finish));
}

Async<Transfer> AgentClient::put(std::string local_path, std::string remote_path, TransferProgress progress,
                                 CancelToken token) {
  auto run = [](State::Self self, std::string local, std::string remote, TransferProgress told,
                CancelToken cancel) -> Async<Transfer> {
    auto look = [local] { return local_tree(local); };
    RILLE_CO_TRY(auto files, co_await thread_job(self->loop, std::move(look)));
    std::int64_t total = 0, before = 0;
    for (const LocalFile& file : files) total += file.size_bytes;
    Transfer sum;
    for (const LocalFile& file : files) {
      std::string there = file.path.empty() ? remote : remote + "/" + file.path;
      if (file.directory) {
        Value header;
        header.set("path", there);
        RILLE_CO_TRY(Reply made, co_await State::request(self, "mkdir", std::move(header), std::string(), cancel));
        continue;
      }
      TransferProgress part = [&](std::int64_t done, std::int64_t) {
        if (told) told(before + done, total);
      };
      std::string here = file.path.empty() ? local : local + "/" + file.path;
      RILLE_CO_CHECK(co_await State::put_file(self, std::move(here), std::move(there), sum, std::move(part), cancel));
      before += file.size_bytes;
    }
    co_return sum;
  };
  return run(state_, std::move(local_path), std::move(remote_path), std::move(progress), std::move(token));
}

namespace {
template <class State>
Async<FileInfo> stat_there(std::shared_ptr<State> self, std::string path, bool digest, CancelToken token) {
  Value header;
  header.set("path", path).set("digest", digest);
  RILLE_CO_TRY(Reply reply, co_await State::request(self, "stat", std::move(header), std::string(), std::move(token)));
  RILLE_CO_TRY(FileInfo out, file_info_from(reply.value));
  out.path = std::move(path);
  co_return out;
}

template <class State>
Async<std::vector<FileInfo>> list_there(std::shared_ptr<State> self, std::string path, CancelToken token) {
  Value header;
  header.set("path", path);
  RILLE_CO_TRY(Reply reply, co_await State::request(self, "list", std::move(header), std::string(), std::move(token)));
  std::vector<FileInfo> out;
  if (const Value::Array* entries = reply.value["entries"].as_array())
    for (const Value& entry : *entries) {
      RILLE_CO_TRY(FileInfo file, file_info_from(entry));
      RILLE_CO_CHECK(store::check_relative(file.path));
      out.push_back(std::move(file));
      if (out.size() > listed_files_max)
        co_return make_error(ErrorKind::integrity, "the machine lists more than 1,000,000 files in '" + path + "'",
                             "pack the folder into an archive on the machine, or get its subfolders one by one");
    }
  co_return out;
}
}  // namespace

Async<FileInfo> AgentClient::stat(std::string remote_path, bool digest, CancelToken token) {
  return stat_there(state_, std::move(remote_path), digest, std::move(token));
}

Async<std::vector<FileInfo>> AgentClient::list(std::string remote_path, CancelToken token) {
  return list_there(state_, std::move(remote_path), std::move(token));
}

Async<Transfer> AgentClient::get(std::string remote_path, std::string local_path, TransferProgress progress,
                                 CancelToken token, Room room) {
  auto run = [](State::Self self, std::string remote, std::string local, TransferProgress told, CancelToken cancel,
                Room asked) -> Async<Transfer> {
    RILLE_CO_TRY(FileInfo root, co_await stat_there(self, remote, true, cancel));
    Transfer sum;
    if (!root.directory) {
      if (local.ends_with('/'))
        local += remote.substr(remote.rfind('/') + 1);  // a folder as the target: keep the remote file's name
      std::string folder = store::parent_path(local), name = local.substr(local.rfind('/') + 1);
      RILLE_CO_CHECK(co_await State::get_file(self, std::move(root), std::move(folder), std::move(name), sum, told,
                                              cancel, asked));
      co_return sum;
    }
    RILLE_CO_CHECK(store::make_directories(local));
    RILLE_CO_TRY(std::vector<FileInfo> files, co_await list_there(self, remote, cancel));
    std::int64_t total = 0, before = 0;
    for (const FileInfo& file : files) total += file.size_bytes;
    for (FileInfo& file : files) {
      std::string path = file.path;
      if (file.directory) {
        RILLE_CO_CHECK(store::make_directory_beneath(local, path));
        continue;
      }
      std::string there = remote + "/" + path;
      RILLE_CO_TRY(file, co_await stat_there(self, std::move(there), true, cancel));
      std::int64_t size = file.size_bytes;
      TransferProgress part = [&](std::int64_t done, std::int64_t) {
        if (told) told(before + done, total);
      };
      RILLE_CO_CHECK(
          co_await State::get_file(self, std::move(file), local, std::move(path), sum, std::move(part), cancel, asked));
      before += size;
    }
    co_return sum;
  };
  return run(state_, std::move(remote_path), std::move(local_path), std::move(progress), std::move(token),
             std::move(room));
}

Async<Transfer> AgentClient::unpack(std::string archive, std::string folder, CancelToken token) {
  auto run = [](State::Self self, Value header, CancelToken cancel) -> Async<Transfer> {
    if (cancel.cancelled()) co_return cancel.reason();
    RILLE_CO_TRY(State::Ticket ticket, self->ask("unpack", std::move(header)));
    auto registration = cancel.on_cancel([answer = ticket.answer](const Error& why) { answer.set(why); });
    State::Leave leave{self, ticket.id, "detach", "attach"};
    auto reply = co_await ticket.answer;
    leave.answered = !cancel.cancelled();
    if (!reply) co_return std::move(reply).error();
    co_return unpacked_from(reply->value);
  };
  Value header;
  header.set("archive", std::move(archive)).set("folder", std::move(folder));
  return run(state_, std::move(header), std::move(token));
}

}  // namespace rille::agent
