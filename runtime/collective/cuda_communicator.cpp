// A CUDA device's communicator. Ranks agree through the mesh, on the lane, as those of the CPU do; then NCCL moves the
// numbers on the device's stream. What happens later, while the device works, a thread watches: a rank that is gone, or
// says that something is wrong, and NCCL's own errors end what waits on the device.
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "runtime/collective/agreement.hpp"
#include "runtime/collective/communicator.hpp"
#include "runtime/device/cuda_ranks.hpp"

namespace rille::collective {

namespace {

using device::CudaDevice;
using device::CudaRanks;
using device::cuda::Collective;

constexpr std::chrono::milliseconds look_every{50};

class CudaCommunicator final : public Communicator {
 public:
  // `ranks` is null in a world of one.
  CudaCommunicator(std::shared_ptr<CudaDevice> device, std::unique_ptr<Mesh> mesh, std::unique_ptr<CudaRanks> ranks,
                   std::shared_ptr<Stop> stop)
      : device_(std::move(device)), mesh_(std::move(mesh)), ranks_(std::move(ranks)), stop_(std::move(stop)),
        agreement_(*mesh_) {
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
  }

  int rank() const override { return mesh_->rank(); }
  int world() const override { return mesh_->world(); }
  std::string transport() const override { return ranks_ ? "nccl" : "nothing"; }
  std::string place() const override { return device_->name(); }
  bool takes(const device::Device& device) const override { return &device == device_.get(); }

  Result<> run(const Operation& op, const std::vector<Piece>& pieces) override {
    RILLE_CHECK(check(op, rank(), world()));
    const std::lock_guard lock(mutex_);
    RILLE_CHECK(mesh_->begin(describe(op)));
    auto ran = agreement_.agree(op);
    if (ran && op.kind != Kind::barrier) ran = give(op, pieces);
    if (ran) return ran;
    Error why = mesh_->fail(std::move(ran).error());
    if (ranks_) ranks_->give_up(why.message);
    return why;
  }

  void leave() override {
    const std::lock_guard lock(mutex_);
    mesh_->leave();
  }
  void stop(Error why) override { stop_->now(std::move(why)); }
  void hurry(std::int64_t ms) override { mesh_->hurry(ms); }

 private:
  Result<> give(const Operation& op, const std::vector<Piece>& pieces) {
    if (!ranks_) return alone(op, pieces);
    constexpr Collective::Kind kinds[] = {Collective::all_reduce, Collective::broadcast, Collective::all_gather,
                                          Collective::reduce_scatter, {}, Collective::send, Collective::receive};
    std::vector<Collective> calls;
    for (const auto& p : pieces) {
      if (p.count == 0) continue;
      calls.push_back({kinds[int(op.kind)], std::int32_t(op.dtype), std::int32_t(op.reduce), op.peer, p.in, p.out,
                       std::size_t(p.count)});
    }
    return calls.empty() ? success() : ranks_->run(calls);
  }

  // A world of one.
  Result<> alone(const Operation& op, const std::vector<Piece>& pieces) {
    for (const auto& p : pieces) {
      if (p.in == p.out || !p.out || p.count == 0) continue;
      RILLE_CHECK(device_->executor()->copy(p.out, p.in, std::size_t(p.count) * size_bytes(op.dtype)));
    }
    return success();
  }

  void watch() {
    std::unique_lock end_lock(end_mutex_);
    while (!ended_.wait_for(end_lock, look_every, [this] { return end_; })) {
      end_lock.unlock();
      look();
      end_lock.lock();
    }
  }

  // While the lane is in run(), it looks itself.
  void look() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || mesh_->broken()) return;
    auto fine = mesh_->look();
    if (fine) fine = ranks_->alive();
    if (!fine) ranks_->give_up(mesh_->fail(std::move(fine).error()).message);
  }

  std::shared_ptr<CudaDevice> device_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<CudaRanks> ranks_;
  std::shared_ptr<Stop> stop_;
  Agreement agreement_;
  std::mutex mutex_;                                 // of the mesh and the agreement
  std::mutex end_mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread watch_;
};

}  // namespace

Result<std::shared_ptr<Communicator>> Communicator::create_on(std::shared_ptr<CudaDevice> device, const Options& o,
                                                              std::shared_ptr<Stop> stop) {
  std::string id;
  if (o.world > 1) {                                 // at all ranks: one without NCCL says so before it meets others
    RILLE_TRY(id, CudaRanks::new_id());
  }
  std::string hex;
  for (const unsigned char c : id) hex += fmt::format("{:02x}", c);
  RILLE_TRY(auto mesh, meet_ranks(o, "CUDA", hex, stop));
  std::unique_ptr<CudaRanks> ranks;
  if (o.world > 1) {
    id.clear();
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) id += char(std::stoi(hex.substr(i, 2), nullptr, 16));
    RILLE_TRY(ranks, CudaRanks::join(device, id, o.rank, o.world));
  }
  return std::shared_ptr<Communicator>(
      std::make_shared<CudaCommunicator>(std::move(device), std::move(mesh), std::move(ranks), std::move(stop)));
}

}  // namespace rille::collective
