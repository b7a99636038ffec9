#include "runtime/compute/tensor/table.hpp"

#include "kernels/attention.hpp"
#include "kernels/attention_masked.hpp"
#include "kernels/batch_norm.hpp"
#include "kernels/convolution.hpp"
#include "kernels/copy.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/fourier.hpp"
#include "kernels/fused.hpp"
#include "kernels/gemm.hpp"
#include "kernels/index.hpp"
#include "kernels/launch.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/pool.hpp"
#include "kernels/random.hpp"
#include "kernels/reduce.hpp"
#include "kernels/rms_norm.hpp"
#include "kernels/rope.hpp"
#include "kernels/scan.hpp"
#include "kernels/softmax.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::kernels {
static void view(const Call&) {}  // stands in the table where there is nothing to run
}  // namespace rille::kernels

namespace rille::tensor {

void gradient::none(Backward&) {}

const Op& op_of(OpId id) {
  static const Op table[] = {
#define RILLE_ROW(name, kernel, rule, keep, in_place)               \
  {#name,                                                           \
   &kernels::kernel == &kernels::view ? nullptr : &kernels::kernel, \
   &gradient::rule == &gradient::none ? nullptr : &gradient::rule,  \
   Keep::keep,                                                      \
   in_place,                                                        \
   #kernel},
      RILLE_OPERATIONS(RILLE_ROW)
#undef RILLE_ROW
  };
  return table[std::size_t(id)];
}

bool draws(const Op& op) {
  for (const OpId id : {OpId::uniform, OpId::normal, OpId::integers, OpId::dropout, OpId::multinomial})
    if (&op == &op_of(id)) return true;
  return false;
}

}  // namespace rille::tensor
