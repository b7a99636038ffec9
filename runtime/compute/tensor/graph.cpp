#include "runtime/compute/tensor/graph.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <future>

#include "runtime/compute/tensor/notebook.hpp"
#include "runtime/compute/tensor/ops.hpp"
#include "runtime/compute/tensor/order.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

double HostData::number(std::int64_t i) const {
  const std::byte* at = bytes.data() + std::size_t(i) * rille::size_bytes(dtype);
  const auto get = [at](auto zero) {
    std::memcpy(&zero, at, sizeof zero);
    return zero;
  };
  switch (dtype) {
    case DType::boolean:
    case DType::u8: return double(get(std::uint8_t{}));
    case DType::i8: return double(get(std::int8_t{}));
    case DType::i32: return double(get(std::int32_t{}));
    case DType::i64: return double(get(std::int64_t{}));
    case DType::bf16: {
      const std::uint32_t bits = std::uint32_t(get(std::uint16_t{})) << 16;
      float f;
      std::memcpy(&f, &bits, 4);
      return double(f);
    }
    case DType::f16: {
      const auto bits = get(std::uint16_t{});
      const int exponent = bits >> 10 & 31, fraction = bits & 1023;
      const double size = exponent == 31  ? (fraction ? std::nan("") : HUGE_VAL)
                          : exponent == 0 ? std::ldexp(fraction, -24)
                                          : std::ldexp(1024 + fraction, exponent - 25);
      return bits & 0x8000 ? -size : size;
    }
    case DType::f32: return double(get(float{}));
    case DType::f64: return get(double{});
  }
  return 0;
}

std::int64_t HostData::integer(std::int64_t i) const {
  if (dtype != DType::i64) return std::int64_t(number(i));
  std::int64_t v;
  std::memcpy(&v, bytes.data() + std::size_t(i) * 8, 8);
  return v;
}

Graph::Graph(std::shared_ptr<device::Device> device) : device_(std::move(device)), impl_(std::make_unique<Impl>()) {}

Graph::~Graph() {
  // A pending launch and the storages that it writes hold each other until the launch is sent: break the cycle.
  for (const auto& node : impl_->launches) {
    for (const auto& out : node->out)
      if (const auto storage = out.storage.lock()) storage->writers.clear();
  }
  // Memory that streams still use is freed once the streams have run the operations that use it.
  if (impl_->streamed)
    device_->lane().post([queue = impl_->queue, device = device_](kernels::LaneState&) {
      if (queue->orders) queue->orders->let_go();
    });
}

Result<std::shared_ptr<Graph>> Graph::create(std::shared_ptr<device::Device> device) {
  if (!device)
    return make_error(ErrorKind::invalid, "tensors need a device, and none is given",
                      "open a device first and pass it");
  return std::shared_ptr<Graph>(new Graph(std::move(device)));
}

std::size_t Graph::pending() const { return impl_->pending.size(); }
bool Graph::tracing() const { return impl_->trace != 0; }
void Graph::set_check_numbers(bool on) { impl_->check_numbers = on; }
bool Graph::checks_numbers() const { return impl_->check_numbers; }

namespace {

// Takes the pending nodes that are still referenced, in order.
std::vector<std::shared_ptr<Node>> take_pending(Graph::Impl& impl) {
  std::vector<std::shared_ptr<Node>> nodes;
  nodes.reserve(impl.pending.size());
  for (const auto& weak : impl.pending) {
    if (auto node = weak.lock()) nodes.push_back(std::move(node));
  }
  impl.pending.clear();
  impl.launches.clear();
  for (const auto& node : nodes) {
    for (const auto& out : node->out) {
      if (const auto storage = out.storage.lock()) storage->writers.clear();
    }
  }
  return nodes;
}

}  // namespace

void Graph::set_work(std::shared_ptr<Work> work) { impl_->work = std::move(work); }
const std::shared_ptr<Work>& Graph::work() const { return impl_->work; }

AllOrNone::AllOrNone(Graph& g, bool to_the_end) : graph_(g) {
  g.impl().together = {g.impl().next_together++, to_the_end};
}
AllOrNone::~AllOrNone() { graph_.impl().together = {}; }

std::size_t Graph::depth() const { return device_->lane().depth(); }

void Graph::flush() {
  auto nodes = take_pending(*impl_);
  if (nodes.empty()) return;
  const bool streams = std::exchange(impl_->streams, false);
  device_->lane().post(
      [queue = impl_->queue, device = device_, nodes = std::move(nodes), streams](kernels::LaneState& lane) mutable {
        for (auto& n : nodes) queue->nodes.push_back(std::move(n));
        nodes.clear();
        if (streams) queue->ordered(*device->executor()).look_ahead(queue->nodes);
        if (auto run = queue->run(*device, lane); !run && !queue->first_error)
          queue->first_error = std::make_shared<const Error>(std::move(run).error());
      });
}

// Sends `node` to the lane at once, after everything pending.
void send(Graph& g, std::shared_ptr<Node> node) {
  g.flush();
  g.device()->lane().post(
      [queue = g.impl().queue, device = g.device(), node = std::move(node)](kernels::LaneState& lane) mutable {
        queue->nodes.push_back(std::move(node));
        if (auto run = queue->run(*device, lane); !run && !queue->first_error)
          queue->first_error = std::make_shared<const Error>(std::move(run).error());
      });
}

namespace {

Result<void> everything(LaneQueue& queue, device::Device& device, kernels::LaneState& lane) {
  queue.first_error = queue.nodes.empty() ? queue.first_error : nullptr;  // operations left: try them again
  auto run = queue.run(device, lane);
  if (run && queue.orders) run = queue.orders->join();
  if (run) run = device.finish();
  const auto error = std::exchange(queue.first_error, nullptr);
  if (error && (run || run.error().kind == ErrorKind::device)) run = Error(*error);  // reports the earliest error
  return run;
}

}  // namespace

void Graph::synchronize(std::function<void(Result<void>)> done) {
  flush();
  const auto work = [queue = impl_->queue, device = device_](kernels::LaneState& lane) {
    return everything(*queue, *device, lane);
  };
  device_->lane().post(device::telling(work, std::move(done)));
}

void Graph::profile_start() {
  flush();
  device_->lane().post([queue = impl_->queue, device = device_](kernels::LaneState&) {
    if (queue->profile) return;
    queue->profile = std::make_unique<Profile>();
    if (auto* executor = device->executor()) queue->profile->begin(*executor);
  });
}

void Graph::profile_stop(std::function<void(Result<ProfileReport>)> done) {
  flush();
  const auto work = [queue = impl_->queue, device = device_](kernels::LaneState& lane) -> Result<ProfileReport> {
    const auto ran = everything(*queue, *device, lane);
    const auto profile = std::exchange(queue->profile, nullptr);
    auto report = profile ? profile->end(device->executor()) : Result<ProfileReport>(ProfileReport());
    if (!ran) return ran.error();
    return report;
  };
  device_->lane().post(device::telling(work, std::move(done)));
}

namespace {

// A tensor's values, once they are in memory. On the lane.
Result<HostData> download(LaneQueue& queue, device::Device& device, const Storage& storage, const Window& w) {
  if (storage.error) return Error(*storage.error);
  HostData data{w.dtype, w.shape, {}};
  const auto size = rille::size_bytes(w.dtype);
  if (const auto& use = device.counted_in()) {
    RILLE_TRY(auto held, MemoryHeld::take(use, MemoryUse::Part::tensors, std::int64_t(size) * w.shape.count()));
    data.held = std::make_shared<const MemoryHeld>(std::move(held));
  }
  data.bytes.resize(std::size_t(w.shape.count()) * size);
  if (data.bytes.empty()) return data;
  if (!storage.buffer)
    return make_error(ErrorKind::internal, "a tensor without a value was read",
                      "this is a bug of Rille: please report it");
  if (queue.orders) RILLE_CHECK(queue.orders->before_read(storage));
  RILLE_CHECK(device.download(data.bytes.data(),
                              static_cast<const std::byte*>(storage.buffer.data()) + std::size_t(w.offset) * size,
                              data.bytes.size()));
  return data;
}

// The tensor with its elements in order, if it may be read now.
Result<Tensor> readable(Graph& graph, const Tensor& t) {
  if (!t) return make_error(ErrorKind::invalid, "read: an empty tensor handle");
  if (graph.tracing())
    return make_error(ErrorKind::state, "a value was read inside a compiled function",
                      "return the tensor and read it outside");
  if (t.impl()->storage->trace)
    return make_error(
        ErrorKind::state,
        fmt::format("a {} tensor made inside a compiled function is read outside it", to_string(t.shape())),
        "return it from the function");
  NoGrad guard(graph);
  RILLE_TRY(Tensor whole, contiguous(t.detach()));
  if (!lies_within(whole.impl()->window, whole.impl()->storage->bytes))
    return make_error(ErrorKind::internal,
                      fmt::format("a {} view that reaches beyond its tensor was read", to_string(t.shape())),
                      "this is a bug of Rille: please report it");
  return whole;
}

}  // namespace

void Graph::read(const Tensor& t, std::function<void(Result<HostData>)> done, bool last_try) {
  const auto whole = readable(*this, t);
  if (!whole) return done(whole.error());
  flush();
  const auto work = [queue = impl_->queue, device = device_, storage = whole->impl()->storage,
                     w = whole->impl()->window, last_try](kernels::LaneState& lane) -> Result<HostData> {
    queue->first_error = queue->nodes.empty() ? queue->first_error : nullptr;
    RILLE_CHECK(queue->run(*device, lane, last_try));
    if (const auto first = std::exchange(queue->first_error, nullptr)) return Error(*first);
    return download(*queue, *device, *storage, w);
  };
  device_->lane().post(device::telling(work, std::move(done)));
}

void Graph::glance(const Tensor& t, std::function<void(Result<HostData>)> done) {
  const auto whole = readable(*this, t);
  if (!whole) return done(whole.error());
  flush();
  const auto work = [queue = impl_->queue, device = device_, storage = whole->impl()->storage,
                     w = whole->impl()->window](kernels::LaneState&) -> Result<HostData> {
    if (!queue->nodes.empty()) return make_error(ErrorKind::memory, "there was no memory to compute it");
    return download(*queue, *device, *storage, w);
  };
  device_->lane().post(device::telling(work, std::move(done)));
}

template <class T>
Result<T> Graph::wait(std::future<Result<T>> arrives) const {
  constexpr std::chrono::milliseconds between_looks(5);
  while (look_ && arrives.wait_for(between_looks) != std::future_status::ready) look_();
  return arrives.get();
}

Result<HostData> Graph::read_blocking(const Tensor& t) {
  auto promise = std::make_shared<std::promise<Result<HostData>>>();
  auto future = promise->get_future();
  read(t, [promise](Result<HostData> r) { promise->set_value(std::move(r)); });
  return wait(std::move(future));
}

Result<Viewed> view_blocking(const Tensor& t) {
  if (!t) return make_error(ErrorKind::invalid, "view: an empty tensor handle");
  Graph& g = t.graph();
  Viewed out;
  RILLE_TRY(out.whole, readable(g, t));
  if (g.device()->kind() != device::Kind::cpu) {
    RILLE_TRY(HostData data, g.read_blocking(out.whole));
    out.copy = std::make_shared<std::vector<std::byte>>(std::move(data.bytes));
    out.data = out.copy->data();
    return out;
  }
  RILLE_CHECK(g.compute_blocking(out.whole));
  const auto& impl = *out.whole.impl();
  const std::size_t first = std::size_t(impl.window.offset) * rille::size_bytes(impl.window.dtype);
  out.data = static_cast<std::byte*>(impl.storage->buffer.data()) + first;
  return out;
}

// When this returns, the lane has run all operations recorded so far, so this thread may read the storage.
Result<void> Graph::compute_blocking(const Tensor& t) {
  auto promise = std::make_shared<std::promise<Result<void>>>();
  auto future = promise->get_future();
  flush();
  const auto work = [queue = impl_->queue, device = device_,
                     storage = t.impl()->storage](kernels::LaneState& lane) -> Result<void> {
    queue->first_error = queue->nodes.empty() ? queue->first_error : nullptr;
    RILLE_CHECK(queue->run(*device, lane, true));
    if (const auto first = std::exchange(queue->first_error, nullptr)) return Error(*first);
    if (storage->error) return Error(*storage->error);
    if (storage->bytes && !storage->buffer)
      return make_error(ErrorKind::internal, "a tensor without a value was viewed",
                        "this is a bug of Rille: please report it");
    return {};
  };
  device_->lane().post(device::telling(work, [promise](Result<void> r) { promise->set_value(std::move(r)); }));
  return wait(std::move(future));
}

Result<void> Graph::synchronize_blocking() {
  auto promise = std::make_shared<std::promise<Result<void>>>();
  auto future = promise->get_future();
  synchronize([promise](Result<void> r) { promise->set_value(std::move(r)); });
  return wait(std::move(future));
}

Result<double> Graph::item_blocking(const Tensor& t) {
  if (t && t.count() != 1) {
    return make_error(ErrorKind::invalid,
                      fmt::format("item: {} has {} elements, not one", to_string(t.shape()), t.count()));
  }
  RILLE_TRY(const auto data, read_blocking(t));
  return data.number(0);
}

void Graph::manual_seed(std::uint64_t seed) { random_ = {seed, 0, 0}; }

}  // namespace rille::tensor
