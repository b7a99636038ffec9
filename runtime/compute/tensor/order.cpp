#include "runtime/compute/tensor/order.hpp"

#include <algorithm>

#include "runtime/compute/tensor/replay.hpp"

namespace rille::tensor {

namespace {

constexpr std::size_t marks_max = 16;

// Calls f(storage, writes) for each storage that an operation uses, except the arena of a compiled function.
template <class F>
Result<void> each_use(const Node& node, const F& f) {
  for (const auto& in : node.in)
    if (in.storage) RILLE_CHECK(f(*in.storage, false));
  for (const auto& out : node.out)
    if (const auto s = out.storage.lock()) RILLE_CHECK(f(*s, true));
  if (!node.replay) return success();
  for (const auto& in : node.replay->inputs) RILLE_CHECK(f(*in.storage, true));
  for (const auto& a : node.replay->plan->anchors)
    if (a.storage) RILLE_CHECK(f(*a.storage, false));
  for (const auto& s : node.replay->plan->written) RILLE_CHECK(f(*s, true));
  for (const auto& weak : node.replay->outputs)
    if (const auto s = weak.lock()) RILLE_CHECK(f(*s, true));
  return success();
}

}  // namespace

void Orders::look_ahead(const std::deque<std::shared_ptr<Node>>& nodes) {
  struct Last {
    Node *written = nullptr, *used = nullptr;
  };
  std::unordered_map<const Storage*, Last> last;
  std::unordered_map<const Node*, std::size_t> place;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = *nodes[i];
    place[&node] = i;
    Node* awaited = nullptr;
    each_use(node, [&](Storage& s, bool writes) {
      Last& l = last[&s];
      if (node.stream) {
        Node* const it = writes ? l.used : l.written;
        if (it && (!awaited || place[it] > place[awaited])) awaited = it;
      } else {
        l.used = &node;
        if (writes) l.written = &node;
      }
      return success();
    }).ok();
    if (awaited) awaited->marked = true;
  }
  // Marks all work sent before this job, including uploads since the previous job.
  Line& own = lines_[0];
  start_ = ++own.given;
  mark(own, nullptr).ok();  // if this fails, operations that wait for the mark fail too
}

Result<void> Orders::mark(Line& line, device::Stream* stream) {
  if (!line.marks.empty() && line.marks.back().number == line.given) return success();
  std::shared_ptr<device::Event> event;
  if (line.marks.size() >= marks_max) {  // waits already enqueued on the oldest event stay valid
    event = std::move(line.marks.front().event);
    line.marks.pop_front();
  } else if (spare_) {
    event = std::move(spare_);
  } else {
    RILLE_TRY(event, executor_.make_event(false));
  }
  RILLE_CHECK(executor_.record(*event, stream));
  line.marks.push_back({line.given, std::move(event)});
  return success();
}

Result<void> Orders::wait(std::uint64_t who, device::Stream* stream, const Turn& turn) {
  if (turn.number == 0 || turn.order == who) return success();
  const auto found = lines_.find(turn.order);
  if (found == lines_.end()) return success();  // the stream has finished and was forgotten
  Line& on = found->second;
  auto& known = lines_[who].behind[turn.order];
  if (on.done >= turn.number || known >= turn.number) return success();
  const auto reaches = [&turn](const Mark& m) { return m.number >= turn.number; };
  auto at = std::find_if(on.marks.begin(), on.marks.end(), reaches);
  if (at == on.marks.end()) {  // operations on the main stream are not all marked
    RILLE_CHECK(mark(on, nullptr));
    at = on.marks.end() - 1;
  }
  RILLE_CHECK(executor_.wait(stream, *at->event));
  known = at->number;
  return success();
}

Result<void> Orders::before(const Node& node, const std::shared_ptr<device::Stream>& stream) {
  const std::uint64_t who = stream ? stream->number() : 0;
  if (stream) {
    Line& line = lines_[who];
    line.stream = stream;
    // The event is created before the launch: an error after the launch could not stop it.
    if (!spare_ && line.marks.size() < marks_max) { RILLE_TRY(spare_, executor_.make_event(false)); }
  }
  const auto others = [&](Storage& s, bool writes) -> Result<void> {
    if (!s.turns) return wait(who, stream.get(), {0, start_});
    RILLE_CHECK(wait(who, stream.get(), s.turns->written));
    if (writes)
      for (const auto& turn : s.turns->read) RILLE_CHECK(wait(who, stream.get(), turn));
    return success();
  };
  RILLE_CHECK(each_use(node, others));
  executor_.choose(stream.get());
  return success();
}

void Orders::note(Storage& storage, const Turn& turn, bool writes) {
  if (!storage.turns) {
    storage.turns = std::make_shared<Turns>();
    storage.turns->written = turn.order ? Turn{0, start_} : turn;
  }
  auto& turns = *storage.turns;
  if (writes) {
    turns.written = turn;
    turns.read.clear();
    return;
  }
  for (auto& t : turns.read)
    if (t.order == turn.order) return void(t.number = turn.number);
  turns.read.push_back(turn);
}

Result<void> Orders::after(const Node& node, const std::shared_ptr<device::Stream>& stream, bool ran) {
  executor_.choose(nullptr);
  if (!ran) return success();
  const std::uint64_t who = stream ? stream->number() : 0;
  Line& line = lines_[who];
  const Turn turn{who, ++line.given};
  each_use(node, [&](Storage& s, bool writes) {
    note(s, turn, writes);
    if (stream && s.buffer) held_[{s.buffer.data(), who}] = {s.buffer, turn.number};
    return success();
  }).ok();
  return stream || node.marked ? mark(line, stream.get()) : success();
}

Result<void> Orders::before_read(const Storage& storage) {
  return storage.turns ? wait(0, nullptr, storage.turns->written) : success();
}

void Orders::after_read(Storage& storage) { note(storage, {0, ++lines_[0].given}, false); }

Result<void> Orders::recorded(const std::shared_ptr<device::Stream>& stream) {
  Line& line = lines_[stream->number()];
  line.stream = stream;
  ++line.given;
  return mark(line, stream.get());
}

Result<void> Orders::join() {
  for (const auto& [order, line] : lines_) RILLE_CHECK(wait(0, nullptr, {order, line.given}));
  return success();
}

bool Orders::let_go() {
  const bool any = !held_.empty();
  for (const auto& [what, held] : held_) wait(0, nullptr, {what.second, held.number}).ok();
  held_.clear();
  return any;
}

bool Orders::passed(std::uint64_t order, std::uint64_t number) {
  const auto line = lines_.find(order);
  if (line == lines_.end() || line->second.done >= number) return true;
  return lines_[0].behind[order] >= number;
}

void Orders::end_of_job() {
  mark(lines_[0], nullptr).ok();  // lets streams wait for the whole job
  for (auto& [order, line] : lines_) {
    if (order == 0 || line.done == line.given) continue;
    for (const auto& m : line.marks) {
      if (m.number <= line.done) continue;
      const auto done = m.event->done();
      if (!done || !*done) break;
      line.done = m.number;
    }
  }
  std::erase_if(held_, [this](const auto& h) { return passed(h.first.second, h.second.number); });
  forget_ended();
}

// Forgets streams that have no handle and have finished.
void Orders::forget_ended() {
  for (auto line = lines_.begin(); line != lines_.end();) {
    const bool ended = line->first && line->second.stream.expired() && line->second.done == line->second.given;
    if (ended)
      for (auto& [order, other] : lines_) other.behind.erase(line->first);
    line = ended ? lines_.erase(line) : std::next(line);
  }
}

}  // namespace rille::tensor
