#include "runtime/workflow/agent/notice.hpp"

#include "runtime/core/store/instance_dir.hpp"

namespace rille::agent {

namespace {

class NoticeFile final : public NoticeSource {
 public:
  explicit NoticeFile(std::string directory) : directory_(std::move(directory)) {}
  Async<std::optional<std::int64_t>> look(CancelToken) override { co_return store::read_notice(directory_); }

 private:
  std::string directory_;
};

}  // namespace

std::unique_ptr<NoticeSource> notice_file(std::string directory) {
  return std::make_unique<NoticeFile>(std::move(directory));
}

}  // namespace rille::agent
