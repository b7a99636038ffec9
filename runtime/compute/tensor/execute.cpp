// Runs recorded operations one after another, on the lane thread.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/collective.hpp"
#include "runtime/compute/tensor/failure.hpp"
#include "runtime/compute/tensor/held.hpp"
#include "runtime/compute/tensor/odd_numbers.hpp"
#include "runtime/compute/tensor/order.hpp"
#include "runtime/compute/tensor/record.hpp"
#include "runtime/compute/tensor/replay.hpp"

namespace rille::tensor {

namespace {

// The lane's scratch memory belongs to the process, not to a run: a run may always enlarge it by this much, whatever
// its limit.
constexpr std::int64_t scratch_always_bytes = 1 << 20;

// Marks a kind and a code at the start of an error text, before and after them. No kernel message begins with this
// mark.
constexpr char kind_mark = '\1';

}  // namespace

void fail_with(const kernels::Call& c, const Error& why) {
  c.fail("%c%s%c%s%c%.*s\n%s", kind_mark, std::string(to_string(why.kind)).c_str(), kind_mark, why.code.c_str(),
         kind_mark, int(std::min<std::size_t>(why.message.size(), 500)), why.message.c_str(), why.hint.c_str());
}

Error kernel_error(std::string_view text) {
  const auto split = text.starts_with(kind_mark) ? text.find(kind_mark, 1) : text.npos;
  if (const auto last = split == text.npos ? split : text.find(kind_mark, split + 1); last != text.npos) {
    Error e = kernel_error(text.substr(last + 1));
    e.kind = error_kind_from(text.substr(1, split - 1));
    e.code = text.substr(split + 1, last - split - 1);
    return e;
  }
  const auto end = std::min(text.find('\n'), text.size());
  return make_error(ErrorKind::invalid, std::string(text.substr(0, end)),
                    std::string(text.substr(std::min(end + 1, text.size()))));
}

namespace {

kernels::View view_of(const Window& w, void* data) {
  return {data ? static_cast<std::byte*>(data) + std::size_t(w.offset) * size_bytes(w.dtype) : nullptr, w.dtype,
          w.shape, w.strides};
}

// torn: a failed exchange may have written part of the other ranks' data into the outputs.
void fail_outputs(Node& node, const std::shared_ptr<const Error>& error, bool torn = false) {
  for (auto& out : node.out) {
    const auto storage = out.storage.lock();
    if (storage && (!out.update || torn)) storage->error = error;  // a failed in-place update leaves the old value
  }
}

std::shared_ptr<const Error> input_error(const Node& node) {
  for (const auto& in : node.in)
    if (in.storage && in.storage->error) return in.storage->error;
  for (const auto& out : node.out) {
    if (!out.update) continue;
    if (const auto s = out.storage.lock(); s && s->error) return s->error;
  }
  return nullptr;
}

// Freed memory is cached for a later buffer of equal size. Buffers of a call that is made once may never be reused, and
// the cache adds to what the call allocates next, so the first step would set the peak memory of a training. Above so
// many cached bytes, such a call releases the cache.
constexpr std::int64_t waiting_once_bytes = 64 << 20;

void give_back_once(const Node& node, const Output& out, device::Device& device) {
  if (node.once && out.bytes >= std::size_t(1) << 20 &&
      device.memory().cached_bytes > waiting_once_bytes + std::int64_t(out.bytes))
    device.release_cache();
}

// Appends the script position to the message; the position is known only while numbers are checked.
Error at_its_line(const Node& node, Error e) {
  if (!node.where.empty() && e.message.find(node.where) == std::string::npos)
    e.message += fmt::format(" ({})", node.where);
  return e;
}

Error no_room(const Node& node, const Output& out, Error e) {
  if (e.kind == ErrorKind::memory)
    e.message += fmt::format(", for {}'s {}{}", node.op->name, name_of(out.window.dtype), to_string(out.window.shape));
  return at_its_line(node, std::move(e));
}

// Error memory: nothing ran. Any other error of the operation is stored in its outputs.
Result<void> run_node(Node& node, LaneQueue& queue, device::Device& device, kernels::LaneState& lane, bool to_the_end) {
  if (const auto error = input_error(node)) {
    fail_outputs(node, error);
    return success();
  }
  std::vector<kernels::View> views;
  std::vector<device::Buffer> temporary;
  views.reserve(node.in.size() + node.out.size());
  for (const auto& in : node.in)
    views.push_back(in.storage ? view_of(in.window, in.storage->buffer.data()) : kernels::View{});
  for (const auto& out : node.out) {
    const auto storage = out.storage.lock();
    device::Buffer buffer = storage ? storage->buffer : device::Buffer{};
    if (!buffer && out.bytes) {
      give_back_once(node, out, device);
      const char* const said = storage ? storage->owner.load() : nullptr;
      const device::OwnedBy owner(said ? said : node.op->name);
      auto allocated = device.allocate(out.bytes);
      if (!allocated) return no_room(node, out, std::move(allocated).error());
      buffer = std::move(*allocated);
      // An output to which no tensor refers any more gets temporary memory; if the operation updates it in place, the
      // memory starts as zeros.
      if (storage) storage->buffer = buffer;
      else if (out.update) RILLE_CHECK(device.clear(buffer.data(), out.bytes));
      if (!storage) temporary.push_back(buffer);
    }
    views.push_back(view_of(out.window, buffer.data()));
  }
  std::array<char, kernels::Call::error_bytes> text{};
  const auto* payload = dynamic_cast<const Held*>(node.payload.get()) ? nullptr : node.payload.get();
  kernels::Call call{views.data(),
                     int(node.in.size()),
                     views.data() + node.in.size(),
                     int(node.out.size()),
                     &node.attrs,
                     node.random,
                     &lane,
                     text.data(),
                     payload};
  auto called = success();
  lane.heed(to_the_end ? kernels::StopSign{} : node.asked.sign());
  if (auto* executor = device.executor()) called = queue.call_on(*executor, *node.op, call);
  else queue.call(*node.op, call);
  if (lane.cut_short()) {
    fail_outputs(node, node.asked.work->why(), true);
    return success();
  }
  if (!called && called.error().kind == ErrorKind::memory) return called;
  if (!called || text[0]) {
    auto error = std::make_shared<const Error>(
        at_its_line(node, called ? kernel_error(text.data()) : std::move(called).error()));
    if (!queue.first_error) queue.first_error = error;
    fail_outputs(node, error, is_collective(node.payload.get()));
  } else if (!node.where.empty()) {
    if (auto checked = check_numbers(node, call, device, queue.first_infinity); !checked) {
      auto error = std::make_shared<const Error>(std::move(checked).error());
      if (!queue.first_error) queue.first_error = error;
      fail_outputs(node, error);
    }
  }
  return success();
}

// Whether a result of the node is still referenced, or the node must run anyway (a replay, launch or update).
bool wanted(const Node& node) {
  return node.replay || node.payload || updates(node) ||
         std::any_of(node.out.begin(), node.out.end(), [](const auto& out) { return !out.storage.expired(); });
}

// Drops unwanted nodes from the end, because a node holds its inputs. Returns whether any node was dropped.
bool drop_unwanted(std::deque<std::shared_ptr<Node>>& nodes) {
  std::deque<std::shared_ptr<Node>> kept;
  const std::size_t before = nodes.size();
  while (!nodes.empty()) {
    if (wanted(*nodes.back())) kept.push_front(std::move(nodes.back()));
    nodes.pop_back();
  }
  nodes = std::move(kept);
  return nodes.size() < before;
}

// Whether no output has elements, so that no kernel has to handle it. Launches and collectives check this themselves.
bool nothing_to_write(const kernels::Call& call) {
  return !call.payload && call.n_out > 0 &&
         std::all_of(call.out, call.out + call.n_out, [](const kernels::View& v) { return v.count() == 0; });
}

}  // namespace

void LaneQueue::call(const Op& op, const kernels::Call& call) {
  if (nothing_to_write(call)) return;
  if (instead) return instead(op, call);
  if (!profile) return op.kernel(call);
  const auto since = std::chrono::steady_clock::now();
  op.kernel(call);
  profile->add(op, call, std::chrono::nanoseconds(std::chrono::steady_clock::now() - since).count());
}

Result<void> LaneQueue::call_on(device::Executor& executor, const Op& op, const kernels::Call& call) {
  if (nothing_to_write(call)) return success();
  if (!profile) return executor.run(op.id, call);
  if (profile->traced()) {
    executor.trace_call(profile->next_call());
    const auto ran = executor.run(op.id, call);
    executor.trace_call(0);
    if (ran) profile->add_traced(op, call);
    return ran;
  }
  RILLE_CHECK(executor.start_clock());
  RILLE_CHECK(executor.run(op.id, call));
  RILLE_TRY(const auto ns, executor.stop_clock_ns());
  profile->add(op, call, ns);
  return success();
}

Orders& LaneQueue::ordered(device::Executor& executor) {
  if (!orders) orders = std::make_shared<Orders>(executor);
  return *orders;
}

Result<void> LaneQueue::run_one(Node& node, device::Device& device, kernels::LaneState& lane) {
  // An update runs to its end, which takes one pass over the tensor, so that no tensor is left half updated.
  if (!node.replay) {
    const bool update = updates(node);
    lane.heed({});
    if (update && node.together.id) begin_together(node);
    const bool breaks_off = node.payload && node.payload->breaks_off();
    auto ran = run_node(node, *this, device, lane, (update && !breaks_off) || bound_to_run(node));
    if (lane.cut_short()) tear(node, node.asked.work->why());
    return ran;
  }
  if (auto* executor = device.executor()) return run_replay_on(*executor, *node.replay, *this, device);
  return run_replay(*node.replay, *this, device, lane);
}

// Runs a node once launches have used streams. If the node cannot wait for other streams, it fails and does not run.
Result<void> LaneQueue::run_ordered(Node& node, device::Device& device, kernels::LaneState& lane) {
  const bool clocked = profile && !profile->traced();  // events on the device's main stream measure the time
  const auto& stream = clocked ? nullptr : node.stream;
  if (auto ready = orders->before(node, stream); !ready) {
    auto error = std::make_shared<const Error>(std::move(ready).error());
    if (!first_error) first_error = error;
    fail_outputs(node, error);
    return success();
  }
  auto ran = run_one(node, device, lane);
  if (auto noted = orders->after(node, stream, ran.ok()); !noted && !first_error)
    first_error = std::make_shared<const Error>(std::move(noted).error());
  return ran;
}

void LaneQueue::begin_together(const Node& node) {
  if (node.together.id != begun.id) changed.clear();
  begun = node.together;
  for (const auto& out : node.out)
    if (out.update && !begun.to_the_end) changed.push_back(out.storage);
}

// The work was ended before this node ran.
void LaneQueue::skip(Node& node, const std::shared_ptr<const Error>& why) {
  fail_outputs(node, why);
  tear(node, why);
  if (!node.replay) return;
  for (const auto& weak : node.replay->outputs)
    if (const auto storage = weak.lock()) storage->error = why;
}

// The node did not run to its end: tensors that operations of its group have already changed lose their values.
void LaneQueue::tear(const Node& node, const std::shared_ptr<const Error>& why) {
  if (!node.together.id || node.together.id != begun.id) return;
  for (const auto& weak : changed)
    if (const auto storage = weak.lock()) storage->error = why;
  changed.clear();
}

namespace {

// Notifies a work's meter when the lane begins and ends to compute its operations.
class Metering {
 public:
  explicit Metering(bool on) : on_(on) {}
  ~Metering() { now_on(nullptr); }
  Metering(const Metering&) = delete;
  void now_on(const std::shared_ptr<Work::Meter>& meter) {
    if (!on_ || meter == meter_) return;
    if (meter_) meter_->ends();
    meter_ = meter;
    if (meter_) meter_->begins();
  }

 private:
  bool on_;
  std::shared_ptr<Work::Meter> meter_;
};

}  // namespace

Result<void> LaneQueue::run(device::Device& device, kernels::LaneState& lane, bool give_up) {
  auto ran = run_all(device, lane, give_up);
  lane.heed({});
  lane.may_grow(INT64_MAX);
  return ran;
}

Result<void> LaneQueue::run_all(device::Device& device, kernels::LaneState& lane, bool give_up) {
  const MemoryUse* const use = device.counted_in().get();
  Metering metering(device.kind() == device::Kind::cpu);
  while (!nodes.empty()) {
    auto& node = *nodes.front();
    lane.may_grow(use ? std::max<std::int64_t>(use->room_bytes(), scratch_always_bytes) : INT64_MAX);
    if (node.asked.ended() && !bound_to_run(node)) {
      skip(node, node.asked.work->why());
      nodes.pop_front();
      continue;
    }
    metering.now_on(node.asked.work->meter());
    auto ran = orders ? run_ordered(node, device, lane) : run_one(node, device, lane);
    if (!ran) {
      if (drop_unwanted(nodes) || (orders && orders->let_go())) continue;
      if (!give_up) return ran;
      auto error = std::make_shared<const Error>(std::move(ran).error());
      // A failed in-place update leaves no error in its outputs; the next read returns this one.
      if (node.replay || updates(node)) first_error = first_error ? first_error : error;
      fail_outputs(node, error);
    }
    nodes.pop_front();  // releases the node's inputs, so that memory without other uses is free at once
  }
  if (orders) orders->end_of_job();
  auto* const executor = device.executor();
  auto paced = executor ? executor->pace() : success();
  return paced || !first_error ? paced : success();  // the first error is the cause, and the next read returns it
}

Node::~Node() {
  // Dropping an input may drop its storage, the writers of that storage, and so on. A loop frees this chain.
  static thread_local std::vector<std::shared_ptr<Storage>>* doomed = nullptr;
  if (doomed) {
    for (auto& i : in)
      if (i.storage) doomed->push_back(std::move(i.storage));
    return;
  }
  std::vector<std::shared_ptr<Storage>> list;
  doomed = &list;
  for (auto& i : in)
    if (i.storage) list.push_back(std::move(i.storage));
  while (!list.empty()) {
    const auto last = std::move(list.back());
    list.pop_back();
  }
  doomed = nullptr;
}

}  // namespace rille::tensor
