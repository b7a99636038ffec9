#include "runtime/compute/tensor/table.hpp"

#include "kernels/kernels.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::kernels {
static void none(const Call&) {}  // the kernel of operations that have none
}  // namespace rille::kernels

namespace rille::tensor {

void gradient::none(Backward&) {}

const Op& op_of(OpId id) {
  static const Op table[] = {
#define RILLE_ROW(name, kernel, build, launch, rule, keep, in_place) \
  {OpId::name,                                                       \
   #name,                                                            \
   &kernels::kernel == &kernels::none ? nullptr : &kernels::kernel,  \
   &gradient::rule == &gradient::none ? nullptr : &gradient::rule,   \
   Keep::keep,                                                       \
   in_place},
      RILLE_OPERATIONS(RILLE_ROW)
#undef RILLE_ROW
  };
  return table[std::size_t(id)];
}

bool draws(const Op& op) {
  switch (op.id) {
    case OpId::uniform:
    case OpId::normal:
    case OpId::integers:
    case OpId::dropout:
    case OpId::multinomial: return true;
    default: return false;
  }
}

}  // namespace rille::tensor
