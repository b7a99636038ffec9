// For peer.py: `peer_convert CHECKPOINT FOLDER BYTES` converts with files of at most so many bytes, as `rille
// checkpoint convert` does with 5 GB.
#include <cstdio>
#include <cstdlib>

#include "runtime/compute/data/checkpoint_convert.hpp"

using namespace rille;

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const Result<data::Checkpoint> from = data::load_checkpoint(argv[1]);
  const auto done = from ? data::convert_checkpoint(*from, argv[2], std::atoll(argv[3])) : from.error();
  if (!done) std::fprintf(stderr, "%s\n", done.error().summary().c_str());
  return done ? 0 : 1;
}
