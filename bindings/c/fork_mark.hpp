// Tells whether this process is a forked child of the process that made the mark. getpid would be a system call;
// reading a page that the kernel clears in a forked child (madvise(2), MADV_WIPEONFORK) takes a nanosecond. Any thread.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

namespace rille::capi {

class ForkMark {
 public:
  ForkMark() {
    void* page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (madvise(page, page_bytes, MADV_WIPEONFORK) != 0) {
      munmap(page, page_bytes);
      return;
    }
    mark_ = static_cast<volatile char*>(page);
    *mark_ = 1;
  }
  ~ForkMark() {
    if (mark_) munmap(const_cast<char*>(mark_), page_bytes);
  }
  ForkMark(const ForkMark&) = delete;
  bool in_child() const { return mark_ ? *mark_ == 0 : getpid() != pid_; }

 private:
  static constexpr std::size_t page_bytes = 4096;
  volatile char* mark_ = nullptr;  // null: the kernel does not support MADV_WIPEONFORK
  pid_t pid_ = getpid();
};

}  // namespace rille::capi
