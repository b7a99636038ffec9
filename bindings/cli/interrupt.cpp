#include "bindings/cli/interrupt.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>

namespace rille::cli {

namespace {
// A signal handler has no other way to its object.
std::atomic<int> interrupts{0};
std::atomic<int> suspend_signal{0};
std::atomic<uv_async_t*> wake_handle{nullptr};
void (*now_function)(void*) = nullptr;
void* now_context = nullptr;
pthread_t main_thread;

void handle(int signal) {
  // The kernel may pick any thread; the Lua state's hook must be set by the one that runs it.
  if (!pthread_equal(pthread_self(), main_thread)) {
    pthread_kill(main_thread, signal);
    return;
  }
  if (signal == SIGINT) interrupts.fetch_add(1);
  else suspend_signal.store(signal);
  if (now_function) now_function(now_context);
  if (uv_async_t* wake = wake_handle.load()) uv_async_send(wake);
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}
}  // namespace

Interrupts::Interrupts(Loop& loop, void (*now)(void*), void* context, std::function<void(int)> on_interrupt,
                       std::function<void(int)> on_suspend)
    : on_interrupt_(std::move(on_interrupt)), on_suspend_(std::move(on_suspend)), wake_(new uv_async_t) {
  interrupts = 0;
  suspend_signal = 0;
  uv_async_init(loop.uv(), wake_, [](uv_async_t* a) { static_cast<Interrupts*>(a->data)->poll(); });
  wake_->data = this;
  uv_unref(reinterpret_cast<uv_handle_t*>(wake_));
  main_thread = pthread_self();
  now_context = context;
  now_function = now;
  wake_handle = wake_;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) set_handler(signal, handle);
  set_handler(SIGPIPE, SIG_IGN);
}

Interrupts::~Interrupts() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) set_handler(signal, SIG_DFL);
  wake_handle = nullptr;
  now_function = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(wake_), [](uv_handle_t* h) { delete reinterpret_cast<uv_async_t*>(h); });
}

void Interrupts::poll() {
  if (int signal = suspend_signal.exchange(0)) on_suspend_(signal);
  int count = interrupts.load();
  if (count > seen_) {
    seen_ = count;
    on_interrupt_(count);
  }
}

}  // namespace rille::cli
