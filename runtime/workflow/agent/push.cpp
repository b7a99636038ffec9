#include "runtime/workflow/agent/push.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/core/store/file.hpp"
#include "runtime/workflow/agent/paths.hpp"

namespace rille::agent {

namespace {

constexpr std::int64_t answer_bytes_max = 1 << 20;

struct Range {
  store::Fd fd;
  std::string shown;
  std::int64_t offset = 0;
};

Result<> read_range(const Range& range, std::uint64_t at, char* out, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const auto from = range.offset + static_cast<std::int64_t>(at + done);
    const ssize_t got = ::pread(range.fd.get(), out + done, size - done, from);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("push", range.shown, errno);
    if (got == 0)
      return make_error(ErrorKind::integrity, fmt::format("'{}' became shorter while it was sent", range.shown),
                        "send it again when it is no longer written");
    done += static_cast<std::size_t>(got);
  }
  return success();
}

Result<std::shared_ptr<Range>> open_range(const std::string& root, const Value& header) {
  auto out = std::make_shared<Range>();
  out->shown = header.text("path");
  out->offset = header.integer("offset", -1);
  const std::int64_t length = header.integer("length", -1);
  RILLE_TRY(const std::string path, inside(root, out->shown));
  out->fd = store::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!out->fd.valid()) return errno_error("push", out->shown, errno);
  struct stat info {};
  if (::fstat(out->fd.get(), &info) != 0) return errno_error("push", out->shown, errno);
  if (!S_ISREG(info.st_mode) || out->offset < 0 || length < 0 || length > info.st_size - out->offset)
    return make_error(ErrorKind::invalid,
                      fmt::format("push '{}': {} bytes at offset {} are not in a file of {} bytes", out->shown, length,
                                  out->offset, static_cast<std::int64_t>(info.st_size)),
                      "send it again when it is no longer written");
  return out;
}

}  // namespace

Async<Reply> push(net::HttpClient& http, std::string root, Value header, CancelToken token) {
  RILLE_CO_TRY(const std::shared_ptr<Range> range, open_range(root, header));
  net::HttpRequest request;
  request.method = "PUT";
  request.url = header.text("url");
  request.path_as_is = true;
  request.response_bytes_max = answer_bytes_max;
  request.body_bytes = header.integer("length");
  request.body_read = [range](std::uint64_t at, char* out, std::size_t size) {
    return read_range(*range, at, out, size);
  };
  if (const Value::Array* headers = header["headers"].as_array())
    for (const Value& one : *headers)
      if (const Value::Array* pair = one.as_array(); pair && pair->size() == 2)
        if (const std::string* name = (*pair)[0].as_string(), *value = (*pair)[1].as_string(); name && value)
          request.headers.emplace_back(*name, *value);
  const net::HttpRequest asked = request;
  RILLE_CO_TRY(const net::HttpResponse answer, co_await http.send(std::move(request), std::move(token)));
  if (!answer.ok()) co_return net::status_error(asked, answer);
  Reply reply;
  reply.value.set("mark", answer.header("etag"));
  co_return reply;
}

}  // namespace rille::agent
