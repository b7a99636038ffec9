// Rows of a table by number.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(embedding)            // in: weight [n, c], ids (contiguous whole numbers); out: [ids.., c]
RILLE_KERNEL(embedding_add)        // in: base [n, c], gradient, ids; out: base + embedding_grad, may be base's memory
RILLE_KERNEL_WIDE(embedding_grad)  // in: gradient [ids.., c], ids; out: [n, c], zeroed first
