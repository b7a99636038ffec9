#include "runtime/core/loop/loop.hpp"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace rille {

namespace {
constexpr std::int64_t look_ns = 100'000;  // how long one spin waits for a post before the loop polls for I/O again
constexpr std::int64_t look_out_ns = 400'000, look_out_for_many_ns = 4'000'000;
constexpr std::int64_t many = 16;  // from this number of expected posts on, spin up to look_out_for_many_ns
constexpr int vain_looks_max = 8;
// time that a turn may run beyond its budget, so that a budget of 0 makes progress
constexpr std::int64_t turn_grace_ns = 2'000'000;
}  // namespace

// Owns a spawned task. A wrapper coroutine awaits the task and deletes this object when the task ends.
struct Loop::Spawned {
  Loop& loop;
  Task<void> task;
  struct Root {
    struct promise_type {
      Root get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
      std::suspend_always initial_suspend() noexcept { return {}; }
      std::suspend_always final_suspend() noexcept { return {}; }
      void return_void() {}
      void unhandled_exception() { std::terminate(); }  // a bug or out of memory, because tasks return errors as values
    };
    std::coroutine_handle<promise_type> handle;
  };
  std::coroutine_handle<> root;

  static Root run(Spawned* self) {
    co_await std::move(self->task);
    // A running coroutine cannot destroy itself, so post the deletion to the loop.
    self->loop.post([self] {
      self->loop.spawned_.erase(self);
      delete self;
    });
  }
  ~Spawned() {
    if (root) root.destroy();
  }
};

Result<std::unique_ptr<Loop>> Loop::create(const Clock& clock) {
  std::unique_ptr<Loop> loop(new Loop(clock));
  const auto failed = [](const char* why) {
    return make_error(ErrorKind::internal, std::string("cannot create an event loop: ") + why);
  };
  loop->wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (loop->wake_fd_ < 0) return failed(std::strerror(errno));
  if (int rc = uv_loop_init(&loop->uv_); rc != 0) return failed(uv_strerror(rc));
  loop->initialized_ = true;
  loop->wake_.data = loop->spin_.data = loop.get();
  uv_poll_init(&loop->uv_, &loop->wake_, loop->wake_fd_);
  uv_poll_start(&loop->wake_, UV_READABLE, [](uv_poll_t* p, int, int) {
    auto* self = static_cast<Loop*>(p->data);
    std::uint64_t wakes = 0;
    // read before take_posts(), so that a later post wakes the loop again
    (void)!::read(self->wake_fd_, &wakes, sizeof wakes);
    self->take_posts();
  });
  uv_unref(reinterpret_cast<uv_handle_t*>(&loop->wake_));
  uv_idle_init(&loop->uv_, &loop->spin_);
  return loop;
}

Result<std::unique_ptr<Loop>> Loop::create_virtual(VirtualTime& time) {
  RILLE_TRY(auto loop, create(time));
  loop->virtual_ = &time;
  return loop;
}

void Loop::abandon_tasks() {
  for (Spawned* s : std::exchange(spawned_, {})) delete s;
  ready_.clear();
  uv_idle_stop(&spin_);
}

Loop::~Loop() {
  if (initialized_) {
    abandon_tasks();
    uv_close(reinterpret_cast<uv_handle_t*>(&wake_), nullptr);
    uv_close(reinterpret_cast<uv_handle_t*>(&spin_), nullptr);
    while (jobs_ > 0) uv_run(&uv_, UV_RUN_ONCE);
    for (int i = 0; i < 1000 && uv_loop_close(&uv_) == UV_EBUSY; ++i) uv_run(&uv_, UV_RUN_NOWAIT);
  }
  while (waking_.load(std::memory_order_acquire)) sched_yield();
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

void Loop::post(std::function<void()> fn) {
  if (ready_.empty()) uv_idle_start(&spin_, [](uv_idle_t*) {});
  ready_.push_back(std::move(fn));
}

// Writes to an eventfd instead of calling uv_async_send: on a machine with all cores busy, uv_async_send would let the
// loop wake on the sender's core in the middle of the call and then spin 50 us for the sender. The lock is released
// before the write, so that the woken loop need not wait for it.
void Loop::post_from_thread(std::function<void()> fn) {
  {
    std::lock_guard lock(mutex_);
    from_threads_.push_back(std::move(fn));
    if (looks_out_.exchange(false, std::memory_order_release)) return;
    if (from_threads_.size() > 1) return;  // the thread that queued the first post wakes the loop
    waking_.fetch_add(1, std::memory_order_relaxed);
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
  waking_.fetch_sub(1, std::memory_order_release);
}

void Loop::take_posts() {
  std::vector<std::function<void()>> arrived;
  {
    std::lock_guard lock(mutex_);
    looks_out_ = false;
    arrived.swap(from_threads_);
  }
  for (auto& fn : arrived) post(std::move(fn));
}

// Spins for a post from another thread before sleeping, because a commit on a fast disk finishes sooner than a sleeping
// thread wakes. After spins in which no post came, the loop spins more rarely. With many expected posts it spins
// longer, because the kernel moves a woken thread to the waker's core, where the two threads would take turns. Returns
// true while the loop should not sleep yet.
bool Loop::look_out() {
  static const bool alone = std::thread::hardware_concurrency() < 2;
  if (alone || (looks_later_ > 0 && looks_later_--)) return false;
  {
    std::lock_guard lock(mutex_);
    looks_out_ = from_threads_.empty();
  }
  const std::int64_t begin = clock_.monotonic_ns();
  std::int64_t now = begin;
  for (int n = 1; looks_out_.load(std::memory_order_acquire) && now - begin < look_ns; ++n) {
    for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
    if (n % 32 == 0) sched_yield();  // let other runnable threads go first
    now = clock_.monotonic_ns();
  }
  const bool in_vain = looks_out_.load(std::memory_order_acquire);
  take_posts();
  looked_ns_ = in_vain ? looked_ns_ + (now - begin) : 0;
  if (in_vain && looked_ns_ < (expected_ < many ? look_out_ns : look_out_for_many_ns)) return true;
  looked_ns_ = 0;
  looks_in_vain_ = in_vain ? std::min(looks_in_vain_ + 1, vain_looks_max) : 0;
  looks_later_ = (1 << looks_in_vain_) - 1;
  return false;
}

void Loop::spawn(Task<void> task) {
  auto* s = new Spawned{*this, std::move(task), {}};
  s->root = Spawned::run(s).handle;
  spawned_.insert(s);
  s->root.resume();
}

// Runs the queued callbacks. Callbacks queued while these run wait for the next turn, after I/O.
void Loop::drain(std::int64_t until_ns) {
  std::deque<std::function<void()>> batch;
  batch.swap(ready_);
  while (!batch.empty()) {
    const std::function<void()> fn = std::move(batch.front());
    batch.pop_front();
    fn();
    if (until_ns < INT64_MAX && clock_.monotonic_ns() >= until_ns) break;
  }
  ready_.insert(ready_.begin(), std::make_move_iterator(batch.begin()), std::make_move_iterator(batch.end()));
  if (ready_.empty()) uv_idle_stop(&spin_);
}

void Loop::run_until(const std::function<bool()>& done) {
  while (true) {
    drain();
    if (done()) return;
    if (virtual_ && nothing_under_way()) {
      if (virtual_->fire_next()) continue;
      return;
    }
    const bool stay = ready_.empty() && expected_ > 0 && !virtual_ && look_out();
    // Reference the wake-up handle while polling: a loop without referenced handles would not block, but a thread job
    // or a post from another thread must be able to wake it.
    uv_ref(reinterpret_cast<uv_handle_t*>(&wake_));
    uv_run(&uv_, ready_.empty() && !stay ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    uv_unref(reinterpret_cast<uv_handle_t*>(&wake_));
  }
}

bool Loop::turn(int budget_ms) {
  std::int64_t until = clock_.monotonic_ns() + static_cast<std::int64_t>(budget_ms) * 1'000'000;
  do {
    drain(until + turn_grace_ns);
    // Reference the wake-up handle: uv_run does not poll a loop without active handles and would miss a thread's post.
    uv_ref(reinterpret_cast<uv_handle_t*>(&wake_));
    uv_run(&uv_, UV_RUN_NOWAIT);
    uv_unref(reinterpret_cast<uv_handle_t*>(&wake_));
    if (virtual_ && nothing_under_way()) (void)virtual_->fire_next();
  } while (!ready_.empty() && clock_.monotonic_ns() < until);
  return !ready_.empty() || !spawned_.empty();
}

namespace {
// Whether libuv still has descriptors to register with epoll; until its next poll, poll_fd does not report these.
bool unregistered_watchers(const uv_loop_t& uv) {
#if UV_VERSION_HEX >= ((1 << 16) | (46 << 8))
  return uv.watcher_queue.next != &uv.watcher_queue;
#else
  return uv.watcher_queue[0] != static_cast<const void*>(&uv.watcher_queue);
#endif
}
}  // namespace

int Loop::poll_timeout_ms() {
  if (!ready_.empty() || virtual_ || unregistered_watchers(uv_)) return 0;
  uv_update_time(&uv_);
  uv_ref(reinterpret_cast<uv_handle_t*>(&wake_));
  int timeout = uv_backend_timeout(&uv_);
  uv_unref(reinterpret_cast<uv_handle_t*>(&wake_));
  return timeout;
}

struct Timer::Handle {
  uv_timer_t timer{};
  std::function<void()> fn;
  VirtualTime* time = nullptr;  // set in virtual time, where the uv_timer_t is unused; null otherwise
  VirtualTime::Key key;
};

Timer::Timer(Loop& loop, std::int64_t ms, std::function<void()> fn) : handle_(new Handle{{}, std::move(fn), {}, {}}) {
  if (VirtualTime* time = loop.virtual_time()) {
    handle_->time = time;
    // Move the callback out before the call, because it may destroy its Timer.
    handle_->key = time->add(ms, [h = handle_] {
      if (auto call = std::move(h->fn)) call();
    });
    return;
  }
  uv_timer_init(loop.uv(), &handle_->timer);
  handle_->timer.data = handle_;
  uv_update_time(loop.uv());
  uv_timer_start(
      &handle_->timer,
      [](uv_timer_t* t) {
        auto call = std::move(static_cast<Handle*>(t->data)->fn);
        if (call) call();
      },
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, ms)), 0);
}

Timer::~Timer() {
  if (handle_->time) {
    handle_->time->remove(handle_->key);
    delete handle_;
    return;
  }
  handle_->fn = nullptr;
  uv_timer_stop(&handle_->timer);
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_->timer),
           [](uv_handle_t* h) { delete static_cast<Handle*>(h->data); });
}

Async<> sleep_for(Loop& loop, std::int64_t ms, CancelToken token) {
  Future<Result<>> done(loop);
  // Capture `done` by reference, because each copy would allocate; the timer and the registration are destroyed before
  // it.
  auto registration = token.on_cancel([&done](const Error& why) { done.set(why); });
  Timer timer(loop, ms, [&done] { done.set(success()); });
  co_return co_await done;
}

}  // namespace rille
