#include "runtime/core/loop/thread_job.hpp"

namespace rille::detail {

void queue_job(Loop& loop, std::unique_ptr<JobBase> job) {
  JobBase* raw = job.release();
  raw->request.data = raw;
  raw->loop = &loop;
  loop.job_began();
  uv_queue_work(
      loop.uv(), &raw->request, [](uv_work_t* w) { static_cast<JobBase*>(w->data)->run(); },
      [](uv_work_t* w, int) {
        std::unique_ptr<JobBase> done(static_cast<JobBase*>(w->data));
        done->loop->job_ended();
        done->finish();
      });
}

}  // namespace rille::detail
