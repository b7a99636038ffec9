// Uses a fake cloud in each way that clouds_fuzz does: clouds_record NAME URL. The fake keeps its answers
// (keep_answers.py).
#include "tests/fuzz/clouds.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/unit/store/temp_dir.hpp"

int main(int argc, char** argv) {
  fuzz_check(argc == 3, "clouds_record NAME URL");
  const TempDir folder;
  const std::unique_ptr<rille::Loop> loop = rille::Loop::create().value();
  const auto provider = clouds::make(*loop, argv[1], argv[2], folder.path);
  for (unsigned operation = 0; operation < clouds::operations; ++operation) {
    std::printf("operation %u\n", operation);
    std::fflush(stdout);
    clouds::use(*loop, *provider, operation);
  }
}
