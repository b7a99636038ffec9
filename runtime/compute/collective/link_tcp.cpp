#include "runtime/compute/collective/link.hpp"

namespace rille::collective {

namespace {

class TcpLink final : public Link {
 public:
  explicit TcpLink(std::unique_ptr<Connection> data) : data_(std::move(data)) { data_->gather(); }

  Result<std::size_t> write_some(const std::byte* from, std::size_t bytes) override {
    return data_->write_some(from, bytes);
  }
  Result<std::size_t> read_some(std::byte* to, std::size_t bytes) override { return data_->read_some(to, bytes); }
  Result<std::size_t> flush() override { return data_->flush_some(); }
  bool pending() const override { return data_->pending(); }
  void finish() override { data_->finish(); }
  int socket() const override { return data_->fd(); }

 private:
  std::unique_ptr<Connection> data_;
};

}  // namespace

std::unique_ptr<Link> tcp_link(std::unique_ptr<Connection> data) { return std::make_unique<TcpLink>(std::move(data)); }

}  // namespace rille::collective
