#include "runtime/core/store/pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace rille::store {

void forget_pages(std::string_view part) {
  if (part.empty()) return;
  const auto before = reinterpret_cast<std::uintptr_t>(part.data()) % std::uintptr_t(::sysconf(_SC_PAGESIZE));
  ::madvise(const_cast<char*>(part.data()) - before, part.size() + before, MADV_DONTNEED);
}

}  // namespace rille::store
