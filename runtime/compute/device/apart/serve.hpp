// The program `rille-kernel`: loads one kernel's library and runs its launches, or runs a compiler, confined.
#pragma once

namespace rille::device::apart {

// rille-kernel run NAME checked|unchecked confined|trusted: messages.hpp on the descriptors named there.
// rille-kernel compile WRITTEN READABLE .. -- COMPILER ..: becomes the compiler, which may write the folder WRITTEN and
// read the others.
// rille-kernel read FILE -- PROGRAM ..: becomes the program, which may read this file and no other file of the user.
// Returns the exit status: 126 if the system cannot confine a process, with the reason on standard error.
int serve(int argc, char** argv);

}  // namespace rille::device::apart
