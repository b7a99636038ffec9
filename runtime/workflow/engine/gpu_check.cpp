#include "runtime/workflow/engine/gpu_check.hpp"

#include <fmt/format.h>

#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {

// Whether one GPU device file may stand for several GPUs: clusters may offer slices of a card, or a shared card.
bool may_share(const std::string& provider) { return provider == "kubernetes" || provider == "slurm"; }

}  // namespace

std::optional<Error> gpus_missing(const lease::Lease& lease, GpusSeen seen) {
  const provider::Offer& offer = lease.request.offer;
  const bool counts = seen.each && !may_share(lease.provider);
  if (offer.gpu_count <= 0 || seen.count >= (counts ? offer.gpu_count : 1)) return std::nullopt;
  Error e = make_error(
      ErrorKind::device,
      fmt::format("the machine of '{}' ({}) was rented as {} of {} with {} {} but shows {}", lease.name,
                  lease.machine_id, offer.id, lease.provider, offer.gpu_count, offer.gpu,
                  seen.count ? fmt::format("{}", seen.count) : "none"),
      seen.count ? "a GPU or its driver has failed: rent another machine; with gpu_check = false this is only a warning"
                 : fmt::format("its image has no driver for them: name one that has, as \"image\" in the settings of "
                               "{}; or install one in a call with setup = true, which comes before this look; "
                               "gpu_check = false only warns",
                               lease.provider));
  e.code = "gpus_missing";
  e.provider = lease.provider;
  e.resource = lease.id;
  return e;
}

// Called before the first non-setup call on a machine. A machine without its GPUs is released at once, because it costs
// money, and the call fails with this error.
Async<> Calls::look_for_gpus(lease::Lease l, std::shared_ptr<agent::AgentClient> agent, CancelToken token) {
  LeaseSession& session = this->session(l.id);
  if (l.request.offer.gpu_count <= 0 || session.gpus_counted >= l.generation) co_return success();
  const Result<Value> machine = co_await agent->describe(token);
  if (!machine || (*machine)["gpus"].is_null()) co_return success();  // the next request reports a broken connection
  session.gpus_counted = l.generation;
  const GpusSeen seen{machine->integer("gpus"), machine->boolean("gpus_each", true)};
  std::optional<Error> missing = gpus_missing(l, seen);
  if (!missing) co_return success();
  if (!l.options.boolean("gpu_check", true)) {
    run_.event(
        "warning",
        Value().set("what", missing->message).set("message", "what uses a GPU there fails, or runs on the processor"));
    co_return success();
  }
  const Result<> released = co_await release(l.id);
  if (released) {
    missing->message += "; it is released";
    co_return std::move(*missing);
  }
  missing->hint = fmt::format("it may still cost money: `rille release {}`. {}", l.id, missing->hint);
  co_return std::move(*missing).with_cause(released.error());
}

}  // namespace rille::engine
