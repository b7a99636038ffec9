// A service that runs its users' scripts: POST /run with a script gives its result as JSON, or its error.
// Each script has 64 MB, 200 ms without waiting, 2 s in all, no machines and no money; each worker thread has a
// runtime.
//
//   c++ -std=c++17 http.cpp $(pkg-config --cflags --libs rille cpp-httplib) -pthread -o http && ./http PORT
//   curl --data 'return 6 * 7' 127.0.0.1:PORT/run
#include <httplib.h>  // Debian: libcpp-httplib-dev

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <rille.hpp>

namespace {

httplib::Server* service = nullptr;  // for the signal handler

rille::RunOptions limits(std::string& printed) {
  rille::RunOptions options;
  options.raw.memory_bytes = 64 << 20;
  options.raw.slice_ms = 200;
  options.raw.wall_ms = 2000;
  options.raw.output_bytes = 64 << 10;
  options.raw.fibers_max = 100;
  options.raw.leases_max = 0;
  options.raw.spend_micros = 0;
  options.print = [&printed](std::string_view text) { printed += text; };
  return options;
}

rille::Runtime make_runtime(const std::string& home) {
  rille::Options options;
  options.home = home;
  rille::Runtime runtime(std::move(options));
  runtime.register_module("app", {{"upper", RILLE_PURE, [](rille::Call& call) -> rille::Value {
                                     std::string text = call.text(0);
                                     for (char& c : text) c = char(std::toupper(static_cast<unsigned char>(c)));
                                     return text;
                                   }}});
  return runtime;
}

void run_script(const std::string& home, const httplib::Request& request, httplib::Response& response) {
  thread_local rille::Runtime runtime = make_runtime(home);
  std::string printed;
  try {
    rille::Run run = runtime.run("user", request.body, limits(printed));
    const std::string result = run.to_end();
    response.set_header("X-Run", run.id());
    response.set_content(result + "\n", "application/json");
  } catch (const rille::Error& e) {
    response.status = e.kind() == RILLE_INTERNAL ? 500 : 422;
    response.set_content(e.json() + "\n", "application/json");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 8080;
  const char* named = std::getenv("RILLE_HOME");
  const std::string home = named ? named : (std::filesystem::temp_directory_path() / "rille-http").string();
  httplib::Server server;
  server.new_task_queue = [] { return new httplib::ThreadPool(4); };
  server.Post("/run", [&home](const auto& request, auto& response) { run_script(home, request, response); });
  service = &server;
  std::signal(SIGTERM, [](int) { service->stop(); });
  std::printf("listening on 127.0.0.1:%d\n", port);
  std::fflush(stdout);
  return server.listen("127.0.0.1", port) ? 0 : 1;
}
