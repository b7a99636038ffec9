#include "runtime/compute/tensor/tensor.hpp"

#include <fmt/format.h>

#include "runtime/compute/tensor/ops.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

const Dims& Tensor::shape() const { return impl_->window.shape; }
const Dims& Tensor::strides() const { return impl_->window.strides; }
std::int64_t Tensor::size(int dim) const { return shape()[dim < 0 ? dim + rank() : dim]; }
std::size_t Tensor::size_bytes() const { return std::size_t(count()) * rille::size_bytes(dtype()); }
DType Tensor::dtype() const { return impl_->window.dtype; }
const std::shared_ptr<device::Device>& Tensor::device() const { return impl_->graph->device(); }
Graph& Tensor::graph() const { return *impl_->graph; }
bool Tensor::is_contiguous() const { return tensor::is_contiguous(shape(), strides()); }
bool Tensor::is_leaf() const { return impl_->grad_fn == nullptr; }
bool Tensor::requires_grad() const { return impl_->requires_grad; }
std::uint64_t Tensor::version() const { return impl_->storage->version; }

std::string Tensor::describe() const {
  if (!impl_) return "no tensor";
  return fmt::format("{}{} {}{}{}", name_of(dtype()), to_string(shape()), device()->name(),
                     requires_grad() ? ", requires grad" : "", impl_->storage->writers.empty() ? "" : ", pending");
}

Result<void> Tensor::set_requires_grad(bool on) {
  if (!is_leaf()) {
    return make_error(
        ErrorKind::state,
        fmt::format(
            "requires_grad cannot be changed on the result of {}, only on leaves (tensors that no operation made)",
            impl_->grad_fn->op->name),
        "t:detach() gives a leaf");
  }
  if (on && !is_floating(dtype())) {
    return make_error(ErrorKind::state, fmt::format("{} tensors have no gradient", name_of(dtype())), "cast it to f32");
  }
  impl_->graph->impl().marks += impl_->requires_grad != on;
  impl_->requires_grad = on;
  return success();
}

void Tensor::free() {
  if (!impl_) return;
  impl_->storage->freed = true;
  ++impl_->graph->impl().marks;
  impl_.reset();
}

Tensor Tensor::grad() const { return leaf_grad(impl_); }

Result<void> Tensor::set_grad(const Tensor& grad) {
  if (grad && (!(grad.shape() == shape()) || grad.dtype() != dtype())) {
    return make_error(
        ErrorKind::invalid,
        fmt::format("the gradient is {}{} and the tensor {}{}: they must have one type and shape",
                    name_of(grad.dtype()), to_string(grad.shape()), name_of(dtype()), to_string(shape())));
  }
  Tensor own = grad;
  if (grad) {
    NoGrad guard(graph());
    RILLE_TRY(own, contiguous(grad.detach()));
  }
  set_leaf_grad(impl_, own);
  return success();
}

Tensor Tensor::detach() const {
  auto impl = std::make_shared<TensorImpl>();
  impl->graph = impl_->graph;
  impl->storage = impl_->storage;
  impl->window = impl_->window;
  impl->argument = impl_->argument;
  impl->counted = MemoryHeld::count(device()->counted_in(), MemoryUse::Part::tensors, sizeof(TensorImpl));
  return Tensor(std::move(impl));
}

}  // namespace rille::tensor
