// Sends a tensor's values directly to another device, not through host memory. The device must be able to write there.
#include <utility>

#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/ops.hpp"
#include "runtime/compute/tensor/order.hpp"
#include "runtime/compute/tensor/owner.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

Result<Tensor> Graph::send(const Tensor& t, Graph& to, std::function<void(Result<void>)> done, bool last_try) {
  if (!t || tracing() || to.tracing() || t.impl()->storage->trace) {
    return make_error(ErrorKind::state, "a tensor moves to another device inside a compiled function",
                      "return the tensor and move it outside");
  }
  NoGrad guard(*this);
  RILLE_TRY(const auto whole, contiguous(t.detach()));
  Tensor made = make_tensor(to, whole.dtype(), whole.shape());
  const auto bytes = made.size_bytes();
  auto& storage = *made.impl()->storage;
  own(made, owner_of_copy(t));
  const device::OwnedBy owner(storage.owner ? storage.owner.load() : "copies from another device");
  RILLE_TRY(storage.buffer, to.device()->allocate(bytes));
  flush();
  const auto& impl = *whole.impl();
  const auto work = [queue = impl_->queue, device = device_, from = impl.storage, w = impl.window, other = to.device_,
                     target = storage.buffer, bytes, last_try](kernels::LaneState& lane) -> Result<void> {
    queue->first_error = queue->nodes.empty() ? queue->first_error : nullptr;
    RILLE_CHECK(queue->run(*device, lane, last_try));
    if (const auto first = std::exchange(queue->first_error, nullptr)) return Error(*first);
    if (from->error) return Error(*from->error);
    if (bytes == 0) return success();
    if (!from->buffer)
      return make_error(ErrorKind::internal, "a tensor without a value was moved",
                        "this is a bug of Rille: please report it");
    if (queue->orders) RILLE_CHECK(queue->orders->before_read(*from));
    const auto* const at =
        static_cast<const std::byte*>(from->buffer.data()) + std::size_t(w.offset) * rille::size_bytes(w.dtype);
    auto sent = device->send(*other, target, at, bytes);
    if (queue->orders) queue->orders->after_read(*from);
    return sent;
  };
  device_->lane().post(device::telling(work, std::move(done)));
  return made;
}

}  // namespace rille::tensor
