// The launch function of each operation, and the message for each Fault.
#include <cstdio>

#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

void none(const Call&, Launcher&, const Names&) {}

namespace {

constexpr Launch launches[] = {
#define RILLE_ROW(operation, kernel, build, function, ...) \
  function == none ? nullptr : +[](const Call& c, Launcher& l) { \
    static constexpr Names names = RILLE_NAMES(#kernel); \
    function(c, l, names); \
  },
    RILLE_OPERATIONS(RILLE_ROW)
#undef RILLE_ROW
};

}  // namespace

Launch launch_of(OpId op) { return launches[int(op)]; }

void describe(const Fault& f, char* text, std::size_t bytes) {
  const auto number = [&](const char* who) {
    std::snprintf(text, bytes, "%s: index %lld at position %lld; there are indices 0 to %lld\n"
                  "indices and positions count from 0", who, f.value, f.place, f.limit - 1);
  };
  double real;
  std::memcpy(&real, &f.value, 8);
  switch (FaultCode(f.code)) {
    case no_fault: std::snprintf(text, bytes, "%s", ""); return;
    case floor_divide_by_zero:
    case remainder_by_zero:
      std::snprintf(text, bytes, "%s: %s divided by zero",
                    f.code == remainder_by_zero ? "remainder" : "floor_divide", name_of(DType(f.type)));
      return;
    case cross_entropy_label:
      std::snprintf(text, bytes, "cross_entropy: label %lld at row %lld; there are classes 0 to %lld\n"
                    "labels and rows count from 0; rows whose label is ignore_index, -100, do not count",
                    f.value, f.place, f.limit - 1);
      return;
    case embedding_id:
      std::snprintf(text, bytes, "embedding: id %lld at position %lld; the table has rows 0 to %lld\n"
                    "ids and positions count from 0", f.value, f.place, f.limit - 1);
      return;
    case gather_number: return number("gather");
    case scatter_number: return number("scatter");
    case scatter_add_number: return number("scatter_add");
    case index_select_number: return number("index_select");
    case index_add_number: return number("index_add");
    case multinomial_weight:
      std::snprintf(text, bytes, "multinomial: weight %g at row %lld, place %lld; weights must be >= 0", real, f.place,
                    f.limit);
      return;
    case multinomial_sum:
      std::snprintf(text, bytes, "multinomial: the weights of row %lld sum to %g; expected a finite sum above 0",
                    f.place, real);
      return;
  }
  std::snprintf(text, bytes, "a kernel on the GPU reports the unknown fault %u, a bug in Rille", f.code);
}

}  // namespace rille::kernels::cuda
