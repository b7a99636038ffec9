#include "bindings/cli/interrupt.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "bindings/cli/exit.hpp"

namespace rille::cli {

namespace {

// Counts of received and handled SIGINTs, and the rest of the state: globals, because a signal handler takes no
// context.
std::atomic<int> interrupts{0}, heeded{0};
std::atomic<int> suspend_signal{0};
std::atomic<uv_async_t*> wake_handle{nullptr};
std::atomic<char* const*> last_words{nullptr};
std::atomic<const char*> last_line{nullptr};
void (*now_function)(void*) = nullptr;
void* now_context = nullptr;
pthread_t main_thread;

void say(const char* line) {
  // a failed write to standard error cannot be reported anywhere
  if (write(STDERR_FILENO, line, strlen(line)) < 0) return;
}

// The alarm's handler: the loop has not handled a signal for a second.
void not_heeded() {
  if (int signal = suspend_signal.load()) {
    say("\nstopped inside a call that cannot be interrupted; continue with: rille resume last\n");
    _exit(128 + signal);
  }
  int waiting = interrupts.load() - heeded.load();
  if (waiting >= 2 && last_words.load()) {
    say("\ncancelled at once, inside a call that cannot be interrupted: releasing what the run holds\n");
    become(last_words.load());
    say("it could not: see `rille leases`\n");
    _exit(status_of(Exit::cleanup_pending));
  }
  if (waiting >= 2 && last_line.load()) {
    say(last_line.load());
    _exit(status_of(Exit::interrupted));
  }
  if (waiting >= 1) {
    say("\ninterrupted, but a call that cannot be interrupted goes on");
    say(last_words.load() || last_line.load() ? " (Ctrl-C again to stop at once)\n" : "\n");
  }
}

void handle(int signal) {
  if (signal == SIGALRM) return not_heeded();
  // The kernel may deliver the signal to any thread; the Lua hook must be set on the main thread, which runs Lua.
  if (!pthread_equal(pthread_self(), main_thread)) {
    pthread_kill(main_thread, signal);
    return;
  }
  if (signal == SIGINT) interrupts.fetch_add(1);
  else suspend_signal.store(signal);
  if (now_function) now_function(now_context);
  if (uv_async_t* wake = wake_handle.load()) uv_async_send(wake);
  alarm(1);
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

constexpr int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};

}  // namespace

void become(char* const* words) {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;  // the program started by exec inherits this setting
  sigaction(SIGINT, &ignore, nullptr);
  alarm(0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(words[0], words);
}

Interrupts::Interrupts(Loop& loop, void (*now)(void*), void* context, std::function<void(int)> on_interrupt,
                       std::function<void(int)> on_suspend, std::vector<std::string> last_resort, std::string line)
    : on_interrupt_(std::move(on_interrupt)), on_suspend_(std::move(on_suspend)), last_resort_(std::move(last_resort)),
      last_line_(std::move(line)), wake_(new uv_async_t) {
  interrupts = heeded = 0;
  suspend_signal = 0;
  uv_async_init(loop.uv(), wake_, [](uv_async_t* a) { static_cast<Interrupts*>(a->data)->poll(); });
  wake_->data = this;
  uv_unref(reinterpret_cast<uv_handle_t*>(wake_));
  main_thread = pthread_self();
  now_context = context;
  now_function = now;
  wake_handle = wake_;
  for (std::string& word : last_resort_) last_words_.push_back(word.data());
  last_words_.push_back(nullptr);
  last_words = last_resort_.empty() ? nullptr : last_words_.data();
  last_line = last_line_.empty() ? nullptr : last_line_.c_str();
  for (int signal : handled) set_handler(signal, handle);
  set_handler(SIGPIPE, SIG_IGN);
}

Interrupts::~Interrupts() {
  alarm(0);
  for (int signal : handled) set_handler(signal, SIG_DFL);
  last_words = nullptr;
  last_line = nullptr;
  wake_handle = nullptr;
  now_function = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(wake_), [](uv_handle_t* h) { delete reinterpret_cast<uv_async_t*>(h); });
}

void Interrupts::poll() {
  alarm(0);
  if (int signal = suspend_signal.exchange(0)) on_suspend_(signal);
  int count = interrupts.load();
  if (count > heeded.load()) {
    heeded = count;
    on_interrupt_(count);
  }
}

}  // namespace rille::cli
