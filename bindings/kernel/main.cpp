#include "runtime/compute/device/apart/serve.hpp"

int main(int argc, char** argv) { return rille::device::apart::serve(argc, argv); }
