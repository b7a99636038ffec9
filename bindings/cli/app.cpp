#include "bindings/cli/app.hpp"

#include <cstdlib>
#include <filesystem>

#include "bindings/host/gpu_use.hpp"
#include "runtime/core/base/places.hpp"

namespace rille::cli {

std::string App::folder() {
  std::error_code gone;
  std::filesystem::path here = std::filesystem::current_path(gone);
  return gone ? "/" : here.string();
}

Result<> open_engine(App& app) {
  if (app.engine) return {};
  engine::EngineOptions options;
  options.home = app.home;
  options.self_exe = app.self_exe;
  options.providers_file = providers_file();
  options.gpu_use = host::why_no_use_of_gpu;
  options.install_identity = host::install_identity;
  if (const char* smtp = std::getenv("RILLE_SMTP_URL")) options.mail.url = smtp;
  if (const char* from = std::getenv("RILLE_SMTP_FROM")) options.mail.from = from;
  RILLE_TRY(app.engine, engine::Engine::open(*app.loop, std::move(options)));
  return {};
}

Exit fail(App& app, const Error& error) {
  if (app.json) {
    app.terminal.clear_progress();
    app.terminal.out(Value().set("error", error_to_value(error)).to_json_pretty() + "\n");
  } else {
    app.terminal.error(error, app.trace);
  }
  return exit_of(error);
}

Exit fail_usage(App& app, const Error& error) {
  fail(app, error);
  return Exit::usage;
}

}  // namespace rille::cli
