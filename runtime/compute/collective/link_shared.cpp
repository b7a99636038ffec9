// Ring buffers in shared memory. Each ring has one writer and one reader. `written` and `read` count bytes and never
// wrap; only the writer changes `written`, only the reader `read`. The memory has no name in the file system: the
// kernel frees it when both processes have ended.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/compute/collective/link.hpp"
#include "runtime/core/base/id.hpp"

namespace rille::collective {

namespace {

constexpr std::size_t ring_bytes = 1u << 20;

struct alignas(64) RingState {
  alignas(64) std::atomic<std::uint64_t> written{0};
  alignas(64) std::atomic<std::uint64_t> read{0};
  alignas(64) std::atomic<std::uint32_t> reader_sleeps{0};
  alignas(64) std::atomic<std::uint32_t> writer_sleeps{0};
};

// The memory of one pair of ranks: the lower rank writes ring 0 and reads ring 1.
struct Shared {
  char nonce[64];
  RingState state[2];
  alignas(64) std::byte bytes[2][ring_bytes];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

class Mapping {
 public:
  explicit Mapping(int fd) {
    void* const at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    shared_ = at == MAP_FAILED ? nullptr : static_cast<Shared*>(at);
  }
  Mapping(Mapping&& o) noexcept : shared_(std::exchange(o.shared_, nullptr)) {}
  Mapping& operator=(Mapping&& o) noexcept {
    std::swap(shared_, o.shared_);
    return *this;
  }
  ~Mapping() {
    if (shared_) ::munmap(shared_, sizeof(Shared));
  }
  Shared* get() const { return shared_; }

 private:
  Shared* shared_;
};

class SharedLink final : public Link {
 public:
  SharedLink(Mapping memory, int mine, Connection& control)
      : memory_(std::move(memory)), mine_(mine), control_(control) {}

  Result<std::size_t> write_some(const std::byte* from, std::size_t bytes) override {
    auto& ring = memory_.get()->state[mine_];
    const auto written = ring.written.load(std::memory_order_relaxed);
    const auto used = written - ring.read.load(std::memory_order_acquire);
    if (used > ring_bytes) return nonsense();
    const std::size_t n = std::min(bytes, ring_bytes - std::size_t(used));
    if (n == 0) return n;
    std::byte* const to = memory_.get()->bytes[mine_];
    const std::size_t at = written % ring_bytes, first = std::min(n, ring_bytes - at);
    std::memcpy(to + at, from, first);
    std::memcpy(to, from + first, n - first);
    ring.written.store(written + n, std::memory_order_seq_cst);
    ring_for(ring.reader_sleeps);
    return n;
  }

  Result<std::size_t> read_some(std::byte* to, std::size_t bytes) override {
    auto& ring = memory_.get()->state[1 - mine_];
    const auto read = ring.read.load(std::memory_order_relaxed);
    const auto there = ring.written.load(std::memory_order_acquire) - read;
    if (there > ring_bytes) return nonsense();
    const std::size_t n = std::min(bytes, std::size_t(there));
    if (n == 0) return n;
    const std::byte* const from = memory_.get()->bytes[1 - mine_];
    const std::size_t at = read % ring_bytes, first = std::min(n, ring_bytes - at);
    std::memcpy(to, from + at, first);
    std::memcpy(to + first, from, n - first);
    ring.read.store(read + n, std::memory_order_seq_cst);
    ring_for(ring.writer_sleeps);
    return n;
  }

  // Sequentially consistent, as are the stores above: either the other rank sees the sleep flag, or this rank's final
  // check sees what the other rank has written or read.
  void sleeps(bool on) override {
    memory_.get()->state[1 - mine_].reader_sleeps.store(on, std::memory_order_seq_cst);
    memory_.get()->state[mine_].writer_sleeps.store(on, std::memory_order_seq_cst);
  }

 private:
  static Error nonsense() {
    return make_error(ErrorKind::integrity, "the shared memory with that rank holds invalid data",
                      "another program or a bug wrote there: start all ranks again from the last checkpoint");
  }

  void ring_for(std::atomic<std::uint32_t>& sleeps) {
    if (sleeps.load(std::memory_order_seq_cst) && sleeps.exchange(0, std::memory_order_seq_cst)) control_.ring();
  }

  Mapping memory_;
  int mine_;
  Connection& control_;
};

struct Offer {
  Fd fd;
  std::optional<Mapping> memory;
  Value words;
};

Offer make_offer() {
  Offer offer;
  offer.fd = Fd(::memfd_create("rille-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!offer.fd.valid() || ::ftruncate(offer.fd.get(), sizeof(Shared)) != 0) return offer;
  ::fcntl(offer.fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  Mapping memory(offer.fd.get());
  if (!memory.get()) return offer;
  const std::string nonce = random_hex(16);
  std::memcpy(memory.get()->nonce, nonce.data(), nonce.size());
  for (auto& s : memory.get()->state) new (&s) RingState();
  offer.words.set("process", std::int64_t(::getpid())).set("descriptor", offer.fd.get()).set("nonce", nonce);
  offer.memory.emplace(std::move(memory));
  return offer;
}

std::optional<Mapping> take(const Value& words) {
  const std::string nonce = words.text("nonce");
  if (nonce.size() != 32) return {};
  const Fd fd(::open(fmt::format("/proc/{}/fd/{}", words.integer("process"), words.integer("descriptor")).c_str(),
                     O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const int seals = fd.valid() ? ::fcntl(fd.get(), F_GET_SEALS) : -1;
  // otherwise the other rank could truncate it and end this process by SIGBUS
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) return {};
  if (::lseek(fd.get(), 0, SEEK_END) != off_t(sizeof(Shared))) return {};
  Mapping memory(fd.get());
  if (!memory.get() || std::memcmp(memory.get()->nonce, nonce.data(), nonce.size()) != 0) return {};
  return memory;
}

}  // namespace

namespace {

template <class T>
Result<T> with(std::size_t rank, Result<T> said) {
  if (said) return said;
  Error e = std::move(said).error();
  e.message = fmt::format("rank {} was lost at the start{}{}", rank, e.message.empty() ? "" : ": ", e.message);
  return e;
}

}  // namespace

// In each pair the lower rank offers memory and the higher accepts; each rank sends all offers before it waits.
Result<std::vector<std::unique_ptr<Link>>> share_memory(Meeting& meeting, int rank, const Limit& limit) {
  std::vector<std::unique_ptr<Link>> links(meeting.peers.size());
  std::vector<Offer> offers(meeting.peers.size());
  for (std::size_t r = std::size_t(rank) + 1; r < links.size(); ++r) {
    if (!meeting.peers[r].same_host) continue;
    offers[r] = make_offer();
    RILLE_CHECK(with(r, meeting.peers[r].control->send(Value().set("share", offers[r].words), limit)));
  }
  for (std::size_t r = 0; r < std::size_t(rank); ++r) {
    auto& peer = meeting.peers[r];
    if (!peer.same_host) continue;
    RILLE_TRY(const auto offer, with(r, peer.control->receive(limit)));
    auto memory = take(offer["share"]);
    RILLE_CHECK(with(r, peer.control->send(Value().set("shared", memory.has_value()), limit)));
    if (memory) links[r] = std::make_unique<SharedLink>(std::move(*memory), 1, *peer.control);
  }
  for (std::size_t r = std::size_t(rank) + 1; r < links.size(); ++r) {
    auto& peer = meeting.peers[r];
    if (!peer.same_host) continue;
    RILLE_TRY(const auto answer, with(r, peer.control->receive(limit)));
    if (answer.boolean("shared") && offers[r].memory)
      links[r] = std::make_unique<SharedLink>(std::move(*offers[r].memory), 0, *peer.control);
  }
  return links;
}

}  // namespace rille::collective
