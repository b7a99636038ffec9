// Rows of a table by number.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(embedding)        // in: weight [n, c], ids (contiguous; u8, i32, i64); out: [ids.., c]
RILLE_KERNEL(embedding_grad)   // in: gradient [ids.., c], ids; out: [n, c], zeroed first
