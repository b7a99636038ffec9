// `rille init [FOLDER]`: the files of a new project: a script, annotations and settings for editors. Files that are
// there are left as they are.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bindings/cli/command.hpp"
#include "bindings/host/stdlib_table.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::cli {

namespace {

constexpr const char* script = R"lua(-- Trains a small model on a rented machine and brings the result back.
--
--   rille check main.lua                        finds mistakes before anything runs
--   rille run main.lua                          on this machine; Ctrl-C, then `rille resume last`, goes on
--   rille plan main.lua --gpu H100              what would be rented, and for how much
--   rille run main.lua --gpu H100 --budget 5    on the cheapest H100 of the clouds that are set up (`rille doctor`)
local rille = require "rille"

local args = rille.args { gpu = "cpu", steps = 200, budget = 1 }
rille.budget { limit = args.budget }

local box = rille.rent("trainer", { gpu = args.gpu })

local loss = box:call("train", { args = args.steps }, function(steps)
  local rille = require "rille"
  local dev = rille.device()
  local model = rille.nn.mlp { 2, 32, 1 }:to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = 1e-2 })
  local last
  for step = 1, steps do
    local x = dev:rand { 64, 2 } * 2 - 1
    local y = (x * x):sum(2, { keepdim = true })
    local loss = ((model(x) - y) ^ 2):mean()
    loss:backward()
    opt:step()
    last = loss:item()
    if step % 50 == 0 then print(("step %d  loss %.4f"):format(step, last)) end
  end
  return last
end)

box:release()
print(("loss %.4f"):format(loss))
return { loss = loss }
)lua";

constexpr const char* luarc = R"({
  "runtime.version": "LuaJIT",
  "workspace.library": [".rille/meta"],
  "workspace.checkThirdParty": false
}
)";

constexpr const char* tasks = R"({
  "version": "2.0.0",
  "tasks": [
    {
      "label": "rille check",
      "type": "shell",
      "command": "rille check ${file}",
      "group": "build",
      "problemMatcher": {
        "owner": "rille",
        "fileLocation": "autoDetect",
        "pattern": { "regexp": "^(.*):(\\d+):(\\d+): (.*)$", "file": 1, "line": 2, "column": 3, "message": 4 }
      }
    },
    { "label": "rille run", "type": "shell", "command": "rille run ${file}", "problemMatcher": [] },
    { "label": "rille plan", "type": "shell", "command": "rille plan ${file}", "problemMatcher": [] }
  ]
}
)";

struct InitCommand final : Command {
  std::string folder = ".";
  void declare(Options& o) override { o.option("FOLDER", folder, "by default this one"); }
  Exit run(App& app) override;
};

// "rille.meta.instance" -> ".rille/meta/instance.lua"
std::string annotation_path(std::string_view module) {
  constexpr std::string_view prefix = "rille.meta.";
  return ".rille/meta/" + std::string(module.substr(prefix.size())) + ".lua";
}

Exit InitCommand::run(App& app) {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::string, std::string_view>> files = {
      {"main.lua", script}, {".luarc.json", luarc}, {".vscode/tasks.json", tasks}, {".gitignore", ".rille/\n"}};
  const std::size_t own = files.size();
  for (const host::StdlibModule& m : host::stdlib_modules())
    if (m.name.starts_with("rille.meta.")) files.emplace_back(annotation_path(m.name), m.source);
  std::vector<std::string> made, left;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string path = (fs::path(folder) / files[i].first).lexically_normal().string();
    std::error_code none;
    if (i < own && fs::exists(path, none)) {  // annotations are those of this build
      left.push_back(path);
      continue;
    }
    const std::string parent = fs::path(path).parent_path().string();
    if (Result<> r = store::make_directories(parent.empty() ? "." : parent); !r) return fail(app, r.error());
    if (Result<> r = store::write_file_atomic(path, files[i].second); !r) return fail(app, r.error());
    if (i < own) made.push_back(path);
  }
  if (app.json) {
    app.terminal.out(Value()
                         .set("made", Value::Array(made.begin(), made.end()))
                         .set("left", Value::Array(left.begin(), left.end()))
                         .to_json_pretty() +
                     "\n");
    return Exit::ok;
  }
  for (const std::string& path : made) app.terminal.out("made " + path + "\n");
  for (const std::string& path : left) app.terminal.out("left " + path + " as it is\n");
  app.terminal.out(
      fmt::format("annotations for editors: {}\n", (fs::path(folder) / ".rille/meta").lexically_normal().string()));
  if (!made.empty() && fs::path(made[0]).filename() == "main.lua")
    app.terminal.out("next: rille run " + made[0] + "\n");
  return Exit::ok;
}

const Registered<InitCommand> init_row({Group::project, "init",
                                        "the files of a new project: a script, settings for editors", Opens::nothing});

}  // namespace

}  // namespace rille::cli
