// Orders: who has to wait for whom, where launches are on streams. The device's own order and each stream count what
// they are given; a storage knows the place of its last write, and of the reads since. So what is given next waits, on
// the device, for just those places: a reader for the last write, a writer for the reads, too. Memory that a stream
// uses is held here until the stream is past it, or the device's own order comes behind it: then it may be used again.
//
// There is none before the first launch on a stream: till then, all of it costs one look at a null pointer.
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

// The n-th that an order was given; the device's own has the number 0, a stream its own.
struct Turn {
  std::uint64_t order = 0, number = 0;
};

struct Turns {
  Turn written;
  std::vector<Turn> read;  // since; the last one of each order
};

class Orders {
 public:
  explicit Orders(device::Executor& executor) : executor_(executor) {}
  // A job's operations before they run: the places that streams are going to wait for are marked where they are, and
  // not where they are found missing.
  void look_ahead(const std::deque<std::shared_ptr<Node>>& nodes);
  // Around an operation. `stream`: where it is launched; null: the device's own order.
  Result<void> before(const Node& node, const std::shared_ptr<device::Stream>& stream);
  Result<void> after(const Node& node, const std::shared_ptr<device::Stream>& stream, bool ran);
  // Around a copy of a value, in the device's own order. After it only where nobody has waited for the copy.
  Result<void> before_read(const Storage& storage);
  void after_read(Storage& storage);
  // A user's event was recorded there: a place that join() has to cover.
  Result<void> recorded(const std::shared_ptr<device::Stream>& stream);
  // The device's own order waits for all streams.
  Result<void> join();
  // It waits for those that hold memory, which is let go of. Whether there was any.
  bool let_go();
  void end_of_job();

 private:
  struct Mark {
    std::uint64_t number = 0;
    std::shared_ptr<device::Event> event;
  };
  struct Line {
    std::weak_ptr<device::Stream> stream;
    std::uint64_t given = 0, done = 0;                        // done: as far as somebody has looked
    std::deque<Mark> marks;                                   // the last few
    std::unordered_map<std::uint64_t, std::uint64_t> behind;  // how far it has waited for the other orders
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
  std::uint64_t start_ = 0;              // of the job, in the device's own order: behind all uploads
  std::shared_ptr<device::Event> spare_;
  std::map<std::pair<const void*, std::uint64_t>, Held> held_;
};

}  // namespace rille::tensor
