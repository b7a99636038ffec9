// Every launch, one function each: (Call, Launcher, the names of its kernel in each type). table.cpp lists which
// operation has which.
#pragma once

#include "kernels/cuda/windows.hpp"

namespace rille::kernels::cuda {

// elementwise.cpp
void unary(const Call& c, Launcher& l, const Names& names);
void binary(const Call& c, Launcher& l, const Names& names);       // two inputs, or one and attrs.f[0]
void bits(const Call& c, Launcher& l, const Names& names);         // whole numbers: signs do not matter
void bits_not(const Call& c, Launcher& l, const Names& names);
void divided(const Call& c, Launcher& l, const Names& names);
void onto(const Call& c, Launcher& l, const Names& names);         // out = op(out, in)
void scaled(const Call& c, Launcher& l, const Names& names);

// copy.cpp
void copies(const Call& c, Launcher& l, const Names& names);
void chooses(const Call& c, Launcher& l, const Names& names);
void fills(const Call& c, Launcher& l, const Names& names);
void counts(const Call& c, Launcher& l, const Names& names);
void joins(const Call& c, Launcher& l, const Names& names);
void pads(const Call& c, Launcher& l, const Names& names);
void copy_view(Launcher& l, const View& in, const View& out);      // any strides, any pair of types
void fill_view(Launcher& l, const View& out, double f, std::int64_t i);

}  // namespace rille::kernels::cuda
