// `rille cp`: copies files to and from object stores.
#include <fmt/format.h>

#include "bindings/cli/command.hpp"
#include "bindings/cli/interrupt.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/transfer/store_copy.hpp"

namespace rille::cli {

namespace {

struct CopyCommand final : Command {
  transfer::StoreCopy copy;
  void declare(Options& o) override {
    o.option("FROM", copy.from, "a file, or an address such as s3://bucket/key or 's3://bucket/*.bin'").required();
    o.option("TO", copy.to, "an address, or a file; with \"/\" at its end it keeps the name").required();
    o.flag("-r,--recursive", copy.recursive, "all files of a folder, or all objects below a prefix");
  }
  Exit run(App& app) override;
};

Exit CopyCommand::run(App& app) {
  CancelSource cancel;
  const auto stop = [&cancel](int) {
    cancel.cancel(make_error(ErrorKind::cancelled, "interrupted", "what was copied stays; run it again to copy all"));
  };
  const Interrupts interrupts(
      *app.loop, [](void*) {}, nullptr, stop, stop);
  copy.moved = [&app](std::int64_t files, std::int64_t bytes, std::int64_t in_all) {
    if (in_all > 1)
      app.terminal.progress(Value()
                                .set("what", "cp " + format_size_bytes(bytes))
                                .set("done", files)
                                .set("total", in_all)
                                .set("unit", "files"));
  };
  const Result<transfer::Copied> copied =
      run_blocking(*app.loop, transfer::copy_with_store(*app.loop, copy, cancel.token()));
  app.terminal.clear_progress();
  if (!copied) return fail(app, copied.error());
  if (app.json)
    app.terminal.out(Value().set("files", copied->files).set("bytes", copied->bytes).to_json_pretty() + "\n");
  else
    app.terminal.note(fmt::format("copied {} {}, {}", copied->files, copied->files == 1 ? "file" : "files",
                                  format_size_bytes(copied->bytes)));
  return Exit::ok;
}

const Registered<CopyCommand> copy_row({Group::machines, "cp", "copy files to and from object stores: s3, gs, az, ..",
                                        Opens::nothing});

}  // namespace

}  // namespace rille::cli
