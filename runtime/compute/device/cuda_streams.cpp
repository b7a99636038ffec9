// Streams and events of a CUDA device, each the owner of a handle from the plug-in.
#include "runtime/compute/device/cuda.hpp"
#include "runtime/compute/device/stream.hpp"

namespace rille::device {

class CudaDevice::CudaStream final : public Stream {
 public:
  CudaStream(std::shared_ptr<CudaDevice> device, cuda::Stream* handle) : device_(std::move(device)), handle_(handle) {}
  ~CudaStream() override { device_->table_->drop_stream(device_->handle_, handle_); }
  static cuda::Stream* handle_of(Stream* s) { return s ? static_cast<CudaStream*>(s)->handle_ : nullptr; }

 private:
  std::shared_ptr<CudaDevice> device_;
  cuda::Stream* handle_;
};

class CudaDevice::CudaEvent final : public Event {
 public:
  CudaEvent(std::shared_ptr<CudaDevice> device, cuda::Event* handle) : device_(std::move(device)), handle_(handle) {}
  ~CudaEvent() override { device_->table_->drop_event(device_->handle_, handle_); }
  cuda::Event* handle() const { return handle_; }

  Result<bool> done() override {
    bool yes = false;
    cuda::Failure why;
    if (!device_->table_->passed(device_->handle_, handle_, &yes, &why)) return cuda_error(why);
    return yes;
  }

  Result<std::int64_t> ns_since(Event& earlier) override {
    std::int64_t ns = 0;
    cuda::Failure why;
    auto* const from = static_cast<CudaEvent&>(earlier).handle_;
    if (!device_->table_->elapsed(device_->handle_, from, handle_, &ns, &why)) return cuda_error(why);
    return ns;
  }

 private:
  std::shared_ptr<CudaDevice> device_;
  cuda::Event* handle_;
};

Result<std::shared_ptr<Stream>> CudaDevice::make_stream() {
  cuda::Failure why;
  auto* const handle = table_->make_stream(handle_, &why);
  if (!handle) return cuda_error(why);
  auto self = std::static_pointer_cast<CudaDevice>(shared_from_this());
  return std::shared_ptr<Stream>(std::make_shared<CudaStream>(std::move(self), handle));
}

Result<std::shared_ptr<Event>> CudaDevice::make_event(bool timed) {
  cuda::Failure why;
  auto* const handle = table_->make_event(handle_, timed, &why);
  if (!handle) return cuda_error(why);
  auto self = std::static_pointer_cast<CudaDevice>(shared_from_this());
  return std::shared_ptr<Event>(std::make_shared<CudaEvent>(std::move(self), handle));
}

void CudaDevice::choose(Stream* stream) { chosen_ = CudaStream::handle_of(stream); }

Result<> CudaDevice::record(Event& event, Stream* stream) {
  cuda::Failure why;
  auto* const handle = static_cast<CudaEvent&>(event).handle();
  if (table_->record(handle_, handle, CudaStream::handle_of(stream), &why)) return success();
  return cuda_error(why);
}

Result<> CudaDevice::wait(Stream* stream, Event& event) {
  cuda::Failure why;
  auto* const handle = static_cast<CudaEvent&>(event).handle();
  if (table_->wait(handle_, CudaStream::handle_of(stream), handle, &why)) return success();
  return cuda_error(why);
}

}  // namespace rille::device
