#include "runtime/workflow/transfer/store_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/core/base/places.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/settings.hpp"

namespace rille::transfer {

namespace {

constexpr std::int64_t whole_max = 64 << 20;  // a larger file is sent in parts
constexpr std::int64_t usual_part_bytes = 16 << 20;
constexpr int parts_at_once = 4;

// A file that is sent. Shared with the requests that read it.
struct Sending {
  std::string path;
  store::Fd fd;
  std::int64_t size_bytes = 0, done_bytes = 0;
  Moved moved;

  objects::Body body(std::int64_t offset, std::int64_t bytes, std::shared_ptr<Sending> self) const {
    objects::Body out;
    out.size_bytes = bytes;
    out.read = [self, offset](std::uint64_t at, char* to, std::size_t size) -> Result<> {
      for (std::size_t done = 0; done < size;) {
        const ssize_t got =
            ::pread(self->fd.get(), to + done, size - done, offset + static_cast<off_t>(at) + static_cast<off_t>(done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno_error("cannot read", self->path, errno);
        if (got == 0)
          return make_error(ErrorKind::integrity, fmt::format("'{}' became shorter while it was sent", self->path),
                            "send it again when it is no longer written");
        done += static_cast<std::size_t>(got);
      }
      return success();
    };
    return out;
  }
  void sent(std::int64_t bytes) {
    done_bytes += bytes;
    if (moved) moved(done_bytes, size_bytes);
  }
};

Result<std::shared_ptr<Sending>> open_sending(const std::string& path, Moved moved) {
  auto out = std::make_shared<Sending>();
  out->path = path;
  out->moved = std::move(moved);
  out->fd = store::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!out->fd.valid()) return errno_error("cannot open", path, errno);
  struct stat info {};
  if (::fstat(out->fd.get(), &info) != 0) return errno_error("cannot look at", path, errno);
  if (!S_ISREG(info.st_mode))
    return make_error(ErrorKind::invalid, fmt::format("cannot send '{}': it is not a file", path),
                      "a folder is sent file by file: rille cp does so");
  out->size_bytes = info.st_size;
  return out;
}

struct Upload {
  PutPart put;
  std::string name;
  std::int64_t size_bytes = 0, part_bytes = 0;
  int next = 0, count = 0;
  std::vector<objects::Part> parts = {};
};

// Sends parts until none is left; several such workers share an upload.
Async<> send_parts(std::shared_ptr<Upload> upload, CancelToken token) {
  while (upload->next < upload->count) {
    if (token.cancelled()) co_return token.reason();
    const int number = ++upload->next;
    const std::int64_t from = (number - 1) * upload->part_bytes;
    const std::int64_t bytes = std::min(upload->part_bytes, upload->size_bytes - from);
    RILLE_CO_TRY(objects::Part part, co_await upload->put(upload->name, number, from, bytes, token));
    upload->parts.push_back(std::move(part));
  }
  co_return success();
}

Async<> send_all_parts(Loop& loop, std::shared_ptr<Upload> upload, CancelToken token) {
  CancelSource working(token);
  std::vector<Together<void>> workers;
  for (int i = 0; i < std::min(parts_at_once, upload->count); ++i)
    workers.push_back({"a part", [upload, &working](CancelToken t) -> Async<> {
                         Result<> done = co_await send_parts(upload, std::move(t));
                         if (!done) working.cancel(done.error());  // the others need not go on
                         co_return done;
                       }});
  const CancelToken stop = working.token();
  std::vector<Result<>> all = co_await together(loop, std::move(workers), 0, stop);
  if (working.cancelled()) co_return stop.reason();
  for (Result<>& done : all) RILLE_CO_CHECK(std::move(done));
  co_return success();
}

Async<objects::Part> put_range(objects::ObjectStore& store, std::shared_ptr<Sending> file, std::string key,
                               std::string upload, int number, std::int64_t from, std::int64_t bytes,
                               CancelToken token) {
  objects::Body body = file->body(from, bytes, file);
  RILLE_CO_TRY(objects::Part part,
               co_await store.put_part(std::move(key), std::move(upload), number, std::move(body), std::move(token)));
  file->sent(bytes);
  co_return part;
}

}  // namespace

Result<std::unique_ptr<objects::ObjectStore>> open_users_store(const objects::ObjectUrl& url, Loop& loop,
                                                               MayConnect may_connect) {
  RILLE_TRY(const Value settings, store::read_settings(providers_file()));
  const objects::StoreSetup setup{loop, settings, std::move(may_connect)};
  return objects::open_store(url, setup);
}

Async<StoreFile> send_file(objects::ObjectStore& store, Loop& loop, std::string path, std::string key,
                           objects::PutRequest request, Moved moved, CancelToken token) {
  RILLE_CO_TRY(const std::shared_ptr<Sending> file, open_sending(path, std::move(moved)));
  const objects::Traits traits = store.traits();
  StoreFile out;
  out.size_bytes = file->size_bytes;
  const bool conditional =
      (request.if_absent && !traits.completes_if_absent) || (!request.if_match.empty() && !traits.completes_if_match);
  if (file->size_bytes <= whole_max || (conditional && file->size_bytes <= traits.put_bytes_max)) {
    objects::Body body = file->body(0, file->size_bytes, file);
    RILLE_CO_TRY(out.version, co_await store.put(key, std::move(body), request, token));
    file->sent(file->size_bytes);
    co_return out;
  }
  const PutPart put = [&store, file, key](std::string upload, int number, std::int64_t from, std::int64_t bytes,
                                          CancelToken t) {
    return put_range(store, file, key, std::move(upload), number, from, bytes, std::move(t));
  };
  RILLE_CO_TRY(out.version, co_await send_in_parts(store, loop, key, file->size_bytes, request, put, token));
  co_return out;
}

Async<std::string> send_in_parts(objects::ObjectStore& store, Loop& loop, std::string key, std::int64_t size_bytes,
                                 objects::PutRequest request, PutPart put, CancelToken token) {
  const objects::Traits traits = store.traits();
  const auto upload = std::make_shared<Upload>(Upload{std::move(put), ""});
  upload->size_bytes = size_bytes;
  upload->part_bytes = std::max({usual_part_bytes, traits.part_bytes_min, size_bytes / traits.parts_max + 1});
  upload->count = static_cast<int>((size_bytes + upload->part_bytes - 1) / upload->part_bytes);
  RILLE_CO_TRY(upload->name, co_await store.begin_parts(key, request.content_type, token));
  Result<> sent = co_await send_all_parts(loop, upload, token);
  Result<std::string> version = std::string();
  if (sent) version = co_await store.complete_parts(key, upload->name, upload->parts, request, token);
  if (sent && version) co_return version;
  // Parts that are left over cost money: they go even if this was cancelled. An error of that changes nothing here.
  (void)co_await store.abort_parts(key, upload->name, CancelToken());
  if (!sent) co_return std::move(sent).error();
  co_return std::move(version).error();
}

Async<StoreFile> fetch_file(objects::ObjectStore& store, Loop& loop, std::string key, std::string path, Room room,
                            Moved moved, CancelToken token) {
  RILLE_CO_CHECK(store::make_directories(store::parent_path(path)));
  RILLE_CO_TRY(store::FileWriter opened, store::FileWriter::create(path));
  const auto out = std::make_shared<store::FileWriter>(std::move(opened));
  std::int64_t done_bytes = 0;
  const objects::Sink sink = [&](std::string_view piece) -> Result<> {
    if (room) RILLE_CHECK(room(static_cast<std::int64_t>(piece.size())));
    RILLE_CHECK(out->write(piece));
    done_bytes += static_cast<std::int64_t>(piece.size());
    if (moved) moved(done_bytes, -1);
    return success();
  };
  RILLE_CO_TRY(objects::ObjectInfo info, co_await store.get(key, objects::GetRequest(), sink, token));
  auto commit = [out] { return out->commit(); };
  RILLE_CO_CHECK(co_await thread_job(loop, std::move(commit)));
  StoreFile made;
  made.size_bytes = done_bytes;
  made.version = std::move(info.version);
  co_return made;
}

}  // namespace rille::transfer
