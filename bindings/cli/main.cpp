// The main function of `rille`: parses the command line and runs the command.
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "bindings/cli/parser/command_line.hpp"
#include "bindings/cli/runs.hpp"
#include "runtime/compute/device/lane_busy.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/loop/core_limit.hpp"
#include "runtime/core/store/sqlite_memory.hpp"

namespace rille::cli {

namespace {

std::string self_path() {
  char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "rille";
}

// If descriptor 0, 1 or 2 is closed, the next opened file would get that number and be used as a standard stream.
void open_missing_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) < 0) _exit(status_of(Exit::script));
}

Exit run_main(App& app, std::vector<std::string> words) {
  app.home = default_home();
  if (!app.home.empty() && app.home.front() != '/') app.home = App::folder() + "/" + app.home;  // a run may change it
  app.self_exe = self_path();
  const char* trace = std::getenv("RILLE_TRACE");
  app.trace = trace && std::string_view(trace) == "1";
  Result<std::unique_ptr<Loop>> loop = Loop::create();
  if (!loop) return fail(app, loop.error());
  app.loop = std::move(*loop);

  Result<CommandLine> line = parse_command_line(std::move(words), app.json);
  if (!line) return fail_usage(app, line.error());
  if (app.json) app.terminal.keep_out_for_data();
  if (!line->text.empty()) {
    app.terminal.out(line->text);
    return Exit::ok;
  }
  if (line->code) {
    RunArguments arguments;
    arguments.code = std::move(line->code);
    return run_to_end(app, arguments);
  }
  if (!line->command) return open_prompt(app, "");
  if (line->row->opens == Opens::engine)
    if (Result<> opened = open_engine(app); !opened) return fail(app, opened.error());
  return line->command->run(app);
}

// If output to standard output was lost, the command fails, whatever its result.
Exit settle(App& app, Exit code) {
  const int why = app.terminal.lost();
  if (!why || why == EPIPE) return code;
  app.terminal.error(make_error(ErrorKind::io, fmt::format("cannot write to standard output: {}", std::strerror(why)),
                                "what a run prints is also in its log: rille logs RUN"),
                     false);
  return code == Exit::ok ? Exit::script : code;
}

}  // namespace

}  // namespace rille::cli

int main(int argc, char** argv) {
  // OpenSSL's exit handler would leave the state of threads that end after it.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  rille::cli::open_missing_streams();
  rille::store::count_no_memory();
  if (!std::getenv("RILLE_CORE_DUMPS")) rille::keep_no_core();
  int code = 0;
  {
    rille::cli::App app;
    code = status_of(rille::cli::settle(app, rille::cli::run_main(app, {argv + std::min(argc, 1), argv + argc})));
  }
  // a graph's worker thread must not run while exit handlers destroy global objects
  if (!rille::device::lanes_settle(std::chrono::seconds(10))) _exit(code);
  return code;
}
