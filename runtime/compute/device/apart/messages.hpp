// The messages between a runner and the process of one kernel: plain structs, one for each message of a SOCK_SEQPACKET
// socket. The process runs untrusted code, so its messages are checked on arrival (kernel_process.cpp). Both sides are
// the same build.
// The process is started with three descriptors: the socket, the memory of the launches (a memfd that the runner fills
// and reads with pwrite and pread), and the kernel's library.
#pragma once

#include <cstdint>

#include "kernels/shim/abi.h"

namespace rille::device::apart {

constexpr int socket_fd = 3, memory_fd = 4, library_fd = 5;
constexpr unsigned symbols_max = 256;
constexpr std::size_t constants_bytes_max = 64 << 10;  // per message; CUDA's limit for all constants of a kernel
constexpr std::size_t text_bytes_max = 512;            // per text, with the terminating zero

struct Loaded {  // the first message, from the process
  int failed = 0;
  int error_kind = 0;
  char code[64] = {}, message[2 * text_bytes_max] = {}, hint[text_bytes_max] = {};
  unsigned parameters = 0, symbols = 0;
  rille_abi::Parameter parameter[rille_abi::parameters_max] = {};
  struct {
    unsigned bytes, element;
  } symbol[symbols_max] = {};
};

enum class Ask : unsigned { constant, launch };

struct SetConstant {  // from the runner; has no answer
  Ask ask = Ask::constant;
  unsigned index = 0, bytes = 0;
  std::byte value[constants_bytes_max] = {};
};

struct Launch {  // from the runner; the answer is Ran
  Ask ask = Ask::launch;
  unsigned grid[3] = {}, block[3] = {}, shared_bytes = 0, cooperative = 0, arguments = 0;
  // Size of the memory. The last said_bytes_max bytes are for the kernel's output; of the others, only the pages that
  // hold arguments may be touched.
  std::uint64_t memory_bytes = 0;
  struct {
    std::uint64_t offset = 0, bytes = 0;  // position in the memory; 0 bytes: a null pointer
    std::byte value[32] = {};
  } argument[rille_abi::parameters_max];
};

struct Ran {
  unsigned out_of_memory = 0, said_bytes = 0;
  unsigned kind = 0;  // Violation::Kind and the fields of Violation
  unsigned block = 0, thread = 0, other_thread = 0, parameter = 0, access = 0, other_access = 0, bytes = 0, line = 0;
  std::int64_t offset_bytes = 0;
  std::uint64_t site = 0, other_site = 0, number = 0;
  char text[text_bytes_max] = {}, file[text_bytes_max] = {};
};

}  // namespace rille::device::apart
