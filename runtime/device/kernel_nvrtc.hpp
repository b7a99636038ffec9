// What else there is to know of NVRTC than kernel_build.hpp says. Any thread.
#pragma once

namespace rille::device {

int nvrtc_version();                         // 13000; 0: there is none

}  // namespace rille::device
