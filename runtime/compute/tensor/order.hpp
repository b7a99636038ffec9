// Orders: which operation waits for which when some launches run on streams. An order is the device's main stream
// (number 0) or a user's stream; each numbers its operations. A storage remembers the operation that last wrote it and
// the reads since. A new operation waits, on the device, for those only: a reader for the last write, a writer also for
// the reads. Memory that a stream uses is held here, and not reused, until the stream has passed that use or the main
// stream has waited for it.
//
// No Orders exists before the first launch on a stream; without one, the cost is one check of a null pointer.
// Threads: the lane. Errors: those of the device.
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

// The n-th operation of an order: order 0 is the device's main stream, each user's stream has its own number.
struct Turn {
  std::uint64_t order = 0, number = 0;
};

struct Turns {
  Turn written;
  std::vector<Turn> read;  // reads since the last write: the latest one of each order
};

class Orders {
 public:
  explicit Orders(device::Executor& executor) : executor_(executor) {}
  // Takes the operations of a job before they run and marks those that streams will wait for, so that their events are
  // recorded as they run.
  void look_ahead(const std::deque<std::shared_ptr<Node>>& nodes);
  // Call around an operation. `stream`: the stream of the launch; null: the device's main stream.
  Result<void> before(const Node& node, const std::shared_ptr<device::Stream>& stream);
  Result<void> after(const Node& node, const std::shared_ptr<device::Stream>& stream, bool ran);
  // Call around a copy of a value to the host, on the main stream; after_read() only if the host has not waited for it.
  Result<void> before_read(const Storage& storage);
  void after_read(Storage& storage);
  // A user's event was recorded on `stream`; join() must wait for it too.
  Result<void> recorded(const std::shared_ptr<device::Stream>& stream);
  // Makes the main stream wait for all streams.
  Result<void> join();
  // Makes the main stream wait for the streams that hold memory, then releases that memory. Returns whether any was
  // held.
  bool let_go();
  void end_of_job();

 private:
  struct Mark {
    std::uint64_t number = 0;
    std::shared_ptr<device::Event> event;
  };
  struct Line {
    std::weak_ptr<device::Stream> stream;
    std::uint64_t given = 0, done = 0;                        // numbers of the last sent and last finished operation
    std::deque<Mark> marks;                                   // events of the latest marked operations
    std::unordered_map<std::uint64_t, std::uint64_t> behind;  // order -> last operation awaited
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

  device::Executor& executor_;           // executor of the graph's device, which outlives this object
  std::map<std::uint64_t, Line> lines_;  // lines_[0]: the device's main stream
  std::uint64_t start_ = 0;              // number, on the main stream, of the job's start; all uploads come before it
  std::shared_ptr<device::Event> spare_;
  std::map<std::pair<const void*, std::uint64_t>, Held> held_;
};

}  // namespace rille::tensor
