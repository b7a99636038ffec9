// Orders: which operation waits for which when launches are on streams. The device's own order and each stream number
// their operations; a storage stores the number of its last write and of the reads since. A new operation waits, on the
// device, for just those: a reader for the last write, a writer also for the reads. Memory that a stream uses is held
// here, before it may be reused, until the stream has passed the use or the device's own order has waited for it.
//
// No Orders exists before the first launch on a stream; until then the cost is one check of a null pointer.
// Threads: the lane. Errors: the device's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

// The n-th operation of an order; the device's own order is 0, each stream has its own number.
struct Turn {
  std::uint64_t order = 0, number = 0;
};

struct Turns {
  Turn written;
  std::vector<Turn> read;  // since then; the last read in each order
};

class Orders {
 public:
  explicit Orders(device::Executor& executor) : executor_(executor) {}
  // Takes a job's operations before they run, to mark those that streams will wait for as they run instead of later.
  void look_ahead(const std::deque<std::shared_ptr<Node>>& nodes);
  // Call around an operation. `stream`: the launch's; null: the device's own order.
  Result<void> before(const Node& node, const std::shared_ptr<device::Stream>& stream);
  Result<void> after(const Node& node, const std::shared_ptr<device::Stream>& stream, bool ran);
  // Call around a copy of a value, in the device's own order; after it only if the host has not waited for the copy.
  Result<void> before_read(const Storage& storage);
  void after_read(Storage& storage);
  // A user's event was recorded on `stream`: join() must cover it.
  Result<void> recorded(const std::shared_ptr<device::Stream>& stream);
  // The device's own order waits for all streams.
  Result<void> join();
  // Waits, in the device's own order, for the streams that hold memory, then releases it. Returns whether there was
  // any.
  bool let_go();
  void end_of_job();

 private:
  struct Mark {
    std::uint64_t number = 0;
    std::shared_ptr<device::Event> event;
  };
  struct Line {
    std::weak_ptr<device::Stream> stream;
    std::uint64_t given = 0, done = 0;                        // done: as far as last checked
    std::deque<Mark> marks;                                   // the last few
    std::unordered_map<std::uint64_t, std::uint64_t> behind;  // by order: how far this one has waited for it
  };
  struct Held {
    device::Buffer memory;
    std::uint64_t number = 0;
  };

  Result<void> wait(std::uint64_t who, device::Stream* stream, const Turn& turn);
  Result<void> mark(Line& line, device::Stream* stream);
  void note(Storage& storage, const Turn& turn, bool writes);
  bool passed(std::uint64_t order, std::uint64_t number);
  void forget_ended();

  device::Executor& executor_;           // of the graph's device, which outlives this
  std::map<std::uint64_t, Line> lines_;  // lines_[0]: the device's own order
  std::uint64_t start_ = 0;              // of the job, in the device's own order: after all uploads
  std::shared_ptr<device::Event> spare_;
  std::map<std::pair<const void*, std::uint64_t>, Held> held_;
};

}  // namespace rille::tensor
