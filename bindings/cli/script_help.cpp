// `rille FILE --help`: prints a script's options, taken from its call of rille.args. A rehearsal runs the script up
// to that call; it rents nothing and leaves no files. `rille schedule add` checks the script's options in this way.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bindings/cli/rehearsal.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/host/check_arguments.hpp"

namespace rille::cli {

namespace {

const char* type_of(const Value& model) {
  if (model.as_number()) return "NUMBER";
  if (model.as_bool()) return "";
  if (const Value::Array* a = model.as_array()) return !a->empty() && a->front().as_number() ? "NUMBER,.." : "TEXT,..";
  return "TEXT";
}

std::string model_word(const Value& model) {
  if (model.as_string()) return model.as_string()->empty() ? "\"\"" : *model.as_string();
  std::string list;
  if (const Value::Array* items = model.as_array()) {
    for (const Value& item : *items) list += (list.empty() ? "" : ",") + model_word(item);
    return list;
  }
  return model.to_json();
}

std::string table(const std::string& file, const Value::Object& options) {
  std::string text = fmt::format("usage: rille run {} [--NAME VALUE ..]\n", file);
  if (options.empty()) return text + "this script names no options in a rille.args\n";
  std::vector<std::vector<std::string>> rows{{"OPTION", "DEFAULT"}};
  for (const auto& [name, model] : options) {
    const char* type = type_of(model);
    rows.push_back({fmt::format("--{}{}{}", name, *type ? " " : "", type), model_word(model)});
  }
  return text + format_table(rows);
}

}  // namespace

bool asks_for_help(const std::vector<std::string>& script_arguments) {
  return std::any_of(script_arguments.begin(), script_arguments.end(),
                     [](const std::string& w) { return w == "--help" || w == "-h"; });
}

Result<> check_script_arguments(App& app, const std::string& file, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  ScratchHome home;
  RILLE_TRY(Rehearsal what, prepare_rehearsal(app, file, words, home));
  what.unknown_calls_end_at_once = true;
  what.args.set(host::check_arguments, true);
  const Outcome o = rehearse(what, provider::sim::Options::calm(1), false);
  if (!o.result && o.result.error().code == "script_arguments") return o.result.error();
  return {};
}

Exit print_script_help(App& app, const std::string& file) {
  ScratchHome home;
  Result<Rehearsal> what = prepare_rehearsal(app, file, {"--help"}, home);
  if (!what) return fail_usage(app, what.error());
  what->unknown_calls_end_at_once = true;
  Outcome o = rehearse(*what, provider::sim::Options::calm(1), false);
  Value options = Value::Object{};
  if (!o.result && o.result.error().code == "script_options") {
    Result<Value> read = Value::from_json(o.result.error().resource);
    if (!read) return fail(app, read.error());
    options = std::move(*read);
  } else if (!o.result) {
    return fail(app, o.result.error());
  }
  app.terminal.out(app.json ? options.to_json_pretty() + "\n" : table(file, *options.as_object()));
  return Exit::ok;
}

}  // namespace rille::cli
