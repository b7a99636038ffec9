// `rille data build`: makes data sets from texts, tables and images.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "bindings/cli/command.hpp"
#include "bindings/cli/interrupt.hpp"
#include "runtime/compute/data/build.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/loop/thread_job.hpp"

namespace rille::cli {

namespace {

struct DataCommand final : Command {
  Exit run(App& app) override;
};

struct DataBuildCommand final : Command {
  std::vector<std::string> sources;
  std::string to, kind, tokenizer, pattern, field, separator;
  std::int64_t shard_tokens = 0, size = 0, shard_bytes = 0;
  double validation = 0, missing = std::numeric_limits<double>::quiet_NaN();
  void declare(Options& o) override {
    o.option("SOURCE", sources, "files and folders: texts, JSONL, CSV; or a folder of images").required();
    o.option("--to", to, "the folder to make").required();
    o.option("--kind", kind, "text, csv or images; by default the sources' names tell");
    o.option("--tokenizer", tokenizer, "of texts: tokenizer.json, a folder that has it, or a .tiktoken file");
    o.option("--pattern", pattern, "how a .tiktoken file splits words: gpt2, cl100k, llama3, or a regular expression");
    o.option("--field", field, "of JSONL: the field that has the text; by default `text`");
    o.option("--shard-tokens", shard_tokens, "a shard ends after so many tokens; by default 100000000");
    o.option("--validation", validation, "the share of documents for validation, such as 0.01; by default none");
    o.option("--separator", separator, "the token before each document, or `none`; by default end-of-text");
    o.option("--missing", missing, "of tables: the number that stands for missing values");
    o.option("--size", size, "of images: pixels of the shorter side, for larger ones; by default all keep their bytes");
    o.option("--shard-bytes", shard_bytes, "of images: a shard ends after so many bytes; by default 268435456");
  }
  Exit run(App& app) override;
  Value options() const;
};

Exit DataCommand::run(App& app) {
  return fail_usage(app, make_error(ErrorKind::invalid, "rille data: a command is missing", "rille data build --help"));
}

Value DataBuildCommand::options() const {
  Value o = Value().set("sources", Value::Array(sources.begin(), sources.end())).set("to", to);
  const std::pair<const char*, const std::string*> texts[] = {
      {"kind", &kind}, {"tokenizer", &tokenizer}, {"pattern", &pattern}, {"field", &field}, {"separator", &separator}};
  for (const auto& [name, text] : texts)
    if (!text->empty()) o.set(name, *text);
  if (shard_tokens) o.set("shard_tokens", shard_tokens);
  if (size) o.set("size", size);
  if (shard_bytes) o.set("shard_bytes", shard_bytes);
  if (validation != 0) o.set("validation", validation);
  if (!std::isnan(missing)) o.set("missing", missing);
  return o;
}

// Builds on another thread, so that the loop handles Ctrl-C and shows the progress.
Async<data::Dataset> build(Loop& loop, Terminal& terminal, Value options, const std::atomic<bool>& stopped) {
  struct Stopped {};
  const auto look = [&stopped] {
    if (stopped) throw Stopped();
  };
  const auto progress = [&loop, &terminal](std::int64_t done, std::int64_t total) {
    Value shown;
    shown.set("what", "data build").set("done", done).set("total", total).set("unit", "bytes");
    loop.post_from_thread([&terminal, shown] { terminal.progress(shown); });
  };
  std::function<Result<data::Dataset>()> job = [=]() -> Result<data::Dataset> {
    try {
      return data::build_dataset(options, {look, {}, {}, progress});
    } catch (const Stopped&) {
      return make_error(ErrorKind::cancelled, "interrupted",
                        "finished shards are kept: the same command goes on after them");
    }
  };
  co_return co_await thread_job(loop, std::move(job));
}

std::string summary_of(const data::Dataset& made, const std::string& to) {
  if (made.kind == "csv")
    return fmt::format("{}: {} rows, {} columns", to, made.facts.integer("rows"),
                       made.facts["columns"].as_array() ? made.facts["columns"].as_array()->size() : 0);
  const auto of = [&](const char* name) { return made.facts.integer(name); };
  if (made.kind == "images")
    return fmt::format("{}: {} images of {} classes, {} shards", to, of("images"), of("classes"), made.shards.size());
  return fmt::format("{}: {} tokens of {} documents for training, {} of {} for validation, {} shards", to,
                     of("train_tokens"), of("train_documents"), of("validation_tokens"), of("validation_documents"),
                     made.shards.size());
}

Exit DataBuildCommand::run(App& app) {
  std::atomic<bool> stopped = false;
  const auto stop = [&stopped](int) { stopped = true; };
  const Interrupts interrupts(
      *app.loop, [](void*) {}, nullptr, stop, stop);
  const Result<data::Dataset> made = run_blocking(*app.loop, build(*app.loop, app.terminal, options(), stopped));
  app.terminal.clear_progress();
  if (!made) return fail(app, made.error());
  if (app.json) {
    app.terminal.out(made->to_value().set("kept", made->kept).to_json_pretty() + "\n");
    return Exit::ok;
  }
  if (made->kept) app.terminal.note(fmt::format("kept {} shards that were finished before", made->kept));
  app.terminal.note(summary_of(*made, to));
  return Exit::ok;
}

const Registered<DataCommand> data_row({Group::machines, "data", "make data sets: rille data build SOURCE .. --to DIR",
                                        Opens::nothing});
const Registered<DataBuildCommand> data_build_row({Group::machines, "data build",
                                                   "shards from texts and images, columns from CSV", Opens::nothing});

}  // namespace

}  // namespace rille::cli
