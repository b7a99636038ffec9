// A CUDA device's communicator. The calling thread of each rank compares operations through the mesh, as on the CPU;
// then NCCL moves the data on the device's stream. While the device works, another thread watches for failures: a
// lost rank, an error reported by a rank, or an NCCL error ends the work that waits on the device. The results of
// that work are lost, and the next read reports the error.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/compute/collective/agreement.hpp"
#include "runtime/compute/collective/communicator.hpp"
#include "runtime/compute/device/cuda_ranks.hpp"
#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/device/stream.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::collective {

namespace {

using device::CudaDevice;
using device::CudaRanks;
using device::cuda::Collective;

constexpr std::chrono::milliseconds look_every{50};
constexpr int looks_at_once = 1000;  // NCCL usually finishes within microseconds: poll this often without sleeping

// Waits until `done` returns true; fails if another rank is lost or the script stops. Error timeout has an empty
// message.
Result<> wait_until(const std::function<Result<bool>()>& done, Mesh& mesh, const Limit& limit) {
  for (int looks = 0;; ++looks) {
    RILLE_TRY(const bool yes, done());
    if (yes) return success();
    if (looks < looks_at_once) {
      std::this_thread::yield();
      continue;
    }
    RILLE_CHECK(mesh.look());
    RILLE_CHECK(limit.pause(1));
    if (limit.left_ms() == 0) return make_error(ErrorKind::timeout, "");
  }
}

Error while_nccl(Error e, const std::string& what, std::int64_t timeout_ms) {
  if (e.kind != ErrorKind::timeout || !e.message.empty()) return e;
  return make_error(ErrorKind::timeout, fmt::format("NCCL waited {} for {}", format_duration_ms(timeout_ms), what),
                    "NCCL_DEBUG=INFO in the environment shows how NCCL reaches the other ranks; the option timeout "
                    "allows a longer wait");
}

class CudaCommunicator final : public Communicator {
 public:
  // `ranks` is null if the world has one rank.
  CudaCommunicator(std::shared_ptr<CudaDevice> device, std::unique_ptr<Mesh> mesh, std::unique_ptr<CudaRanks> ranks,
                   std::shared_ptr<device::Event> last, std::shared_ptr<Stop> stop, std::int64_t timeout_ms)
      : device_(std::move(device)), mesh_(std::move(mesh)), ranks_(std::move(ranks)), stop_(std::move(stop)),
        agreement_(*mesh_), last_(std::move(last)), timeout_ms_(timeout_ms) {
    if (ranks_) watch_ = std::thread([this] { watch(); });
  }
  ~CudaCommunicator() override {
    if (!watch_.joinable()) return;
    {
      const std::lock_guard lock(end_mutex_);
      end_ = true;
    }
    ended_.notify_one();
    watch_.join();
    rest();
  }

  int rank() const override { return mesh_->rank(); }
  int world() const override { return mesh_->world(); }
  std::string transport() const override { return ranks_ ? "nccl" : "nothing"; }
  std::string place() const override { return device_->name(); }
  std::string host() const override { return mesh_->host(); }
  bool takes(const device::Device& device) const override { return &device == device_.get(); }

  Result<> run(const Operation& op, const std::vector<Piece>& pieces) override {
    RILLE_CHECK(check(op, rank(), world()));
    const std::lock_guard lock(mutex_);
    auto ran = mesh_->begin(describe(op));
    if (!ran && (lost_ || left_)) return ran;
    if (ran && to_itself(op, rank())) return copy(op, pieces);
    if (ran) ran = agreement_.agree(op);
    if (!ran) return lose(agreement_.explain(std::move(ran).error(), op));
    if (op.kind != Kind::barrier) ran = give(op, pieces);
    if (ran) return ran;
    return lose(std::move(ran).error());
  }

  void leave() override {
    const std::lock_guard lock(mutex_);
    left_ = true;
    mesh_->leave();
  }
  void stop(Error why) override { stop_->now(std::move(why)); }
  void hurry(std::int64_t ms) override {
    mesh_->hurry(ms);
    hurry_ms_ = ms;
  }

 private:
  static void add(const Operation& op, const Piece& p, std::vector<Collective>& calls) {
    constexpr Collective::Kind kinds[] = {
        Collective::all_reduce, Collective::broadcast, Collective::all_gather, Collective::reduce_scatter, {},
        Collective::send,       Collective::receive};
    if (p.count == 0) return;
    calls.push_back({kinds[int(op.kind)], std::int32_t(op.dtype), std::int32_t(op.reduce), op.peer, p.in, p.out,
                     std::size_t(p.count)});
  }

  // One NCCL group, so the device does all calls at once: a sendrecv does not wait to send before it receives.
  Result<> give(const Operation& op, const std::vector<Piece>& pieces) {
    if (!ranks_) return alone(op, pieces);
    std::vector<Collective> calls;
    if (op.kind == Kind::sendrecv) {
      add(sending_half(op), pieces.front(), calls);
      add(receiving_half(op), pieces.back(), calls);
    } else {
      for (const auto& p : pieces) add(op, p, calls);
    }
    if (calls.empty()) return success();
    given_ = Given::not_yet;
    RILLE_CHECK(ranks_->run(calls));
    const Limit limit(timeout_ms_, *stop_);
    if (auto ready = wait_until([this] { return ranks_->settled(); }, *mesh_, limit); !ready)
      return while_nccl(std::move(ready).error(), "a call to be ready", timeout_ms_);
    RILLE_CHECK(device_->executor()->record(*last_, nullptr));
    given_ = Given::yes;
    return success();
  }

  // Whether the device has finished all submitted calls. Returns false after a call that was only partly submitted.
  Result<bool> rested() {
    if (given_ == Given::nothing) return true;
    if (given_ == Given::not_yet) return false;
    RILLE_TRY(const bool done, last_->done());
    if (done) given_ = Given::nothing;
    return done;
  }

  // Stores the first error. Work that the device has not finished at that time is abandoned.
  Error lose(Error e) {
    Error why = mesh_->fail(std::move(e));
    give_up(why.message);
    return why;
  }

  void give_up(const std::string& why) {
    lost_ = true;
    if (!ranks_) return;
    const auto done = rested();
    ranks_->give_up(done && *done ? "" : why);
  }

  // Before this rank leaves, waits for its submitted calls, since the other ranks need its part; a lost rank ends the
  // wait.
  void rest() {
    const std::lock_guard lock(mutex_);
    if (lost_) return;
    mesh_->leave();
    const auto hurry = hurry_ms_.load();
    const Limit limit(hurry ? std::min(hurry, timeout_ms_) : timeout_ms_, *stop_);
    auto done = wait_until([this] { return rested(); }, *mesh_, limit);
    if (!done) give_up(while_nccl(std::move(done).error(), "the last calls", timeout_ms_).message);
  }

  // Runs the operation in a world of one rank: copies each input to its output.
  Result<> alone(const Operation& op, const std::vector<Piece>& pieces) {
    for (const auto& p : pieces) {
      if (p.in == p.out || !p.out || p.count == 0) continue;
      RILLE_CHECK(device_->executor()->copy(p.out, p.in, std::size_t(p.count) * size_bytes(op.dtype)));
    }
    return success();
  }

  // A sendrecv of this rank with itself.
  Result<> copy(const Operation& op, const std::vector<Piece>& pieces) {
    if (op.count == 0) return success();
    return device_->executor()->copy(pieces.back().out, pieces.front().in,
                                     std::size_t(op.count) * size_bytes(op.dtype));
  }

  void watch() {
    std::unique_lock end_lock(end_mutex_);
    while (!ended_.wait_for(end_lock, look_every, [this] { return end_; })) {
      end_lock.unlock();
      look();
      end_lock.lock();
    }
  }

  // Looks for failures once. Does nothing while run() holds the mutex, because run() looks itself.
  void look() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || mesh_->broken()) return;
    auto fine = mesh_->look();
    auto settled = fine ? ranks_->settled() : Result<bool>(std::move(fine).error());
    if (!settled) lose(std::move(settled).error());
  }

  std::shared_ptr<CudaDevice> device_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<CudaRanks> ranks_;
  std::shared_ptr<Stop> stop_;
  Agreement agreement_;
  std::shared_ptr<device::Event> last_;  // recorded after the last submitted call
  enum class Given { nothing, not_yet, yes } given_ = Given::nothing;
  bool lost_ = false, left_ = false;
  std::int64_t timeout_ms_;
  std::atomic<std::int64_t> hurry_ms_{0};  // time limit set by hurry(), in ms; 0: none
  std::mutex mutex_;                       // guards the mesh, the agreement and the submitted calls
  std::mutex end_mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread watch_;
};

// Joins the NCCL communicator; returns when all ranks have joined.
Result<std::unique_ptr<CudaRanks>> join_ranks(const std::shared_ptr<CudaDevice>& device, const std::string& id,
                                              const Options& o, Mesh& mesh, const Stop& stop) {
  RILLE_TRY(auto ranks, CudaRanks::join(device, id, o.rank, o.world));
  const Limit limit(o.timeout_ms, stop);
  auto joined = wait_until([&ranks] { return ranks->settled(); }, mesh, limit);
  if (joined) return ranks;
  ranks->give_up("");
  return while_nccl(std::move(joined).error(), "the other ranks to join", o.timeout_ms);
}

}  // namespace

Result<std::shared_ptr<Communicator>> Communicator::create_on(std::shared_ptr<CudaDevice> device, const Options& o,
                                                              std::shared_ptr<Stop> stop) {
  std::string id;
  if (o.world > 1)
    RILLE_CHECK(CudaRanks::find_nccl());  // every rank tries it, so that a rank without NCCL fails before it connects
  if (o.world > 1 && o.rank == 0) { RILLE_TRY(id, CudaRanks::new_id()); }
  std::string hex;
  for (const unsigned char c : id) hex += fmt::format("{:02x}", c);
  RILLE_TRY(auto mesh, meet_ranks(o, "CUDA", hex, stop));
  std::unique_ptr<CudaRanks> ranks;
  std::shared_ptr<device::Event> last;
  if (o.world > 1) {
    RILLE_TRY(last, device->executor()->make_event(false));
    id.clear();
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) id += char(std::stoi(hex.substr(i, 2), nullptr, 16));
    auto joined = join_ranks(device, id, o, *mesh, *stop);
    if (!joined) return mesh->fail(std::move(joined).error());  // tells the other ranks not to wait for this rank
    ranks = std::move(*joined);
  }
  return std::shared_ptr<Communicator>(std::make_shared<CudaCommunicator>(
      std::move(device), std::move(mesh), std::move(ranks), std::move(last), std::move(stop), o.timeout_ms));
}

}  // namespace rille::collective
