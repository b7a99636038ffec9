// Elements chosen and placed by number. Numbers are of any integer type and count from 0; one out of range
// fails with its value and place. Built once (kernels/generic): they wait for memory.
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {

// in: a, index (contiguous, a's rank); out[0] of index's shape: out[.., j, ..] = a[.., index[.., j, ..], ..] along
// dimension attrs.i[0]
void gather(const Call& c);
// in: a, index (contiguous), src (index's shape). out[0], contiguous: a, with src put at the places that
// gather reads; of several at one place the last stays. attrs.i[0]: the dimension; attrs.i[1] = 1: added
// instead, in their order.
void scatter_any(const Call& c);
inline void scatter(const Call& c) { c.attrs->i[1] ? widened(c, &scatter_any) : scatter_any(c); }
// in: a [outer, n, inner], index [m]; out: [outer, m, inner]; all contiguous. attrs.i[0]: the dimension of n
void index_select(const Call& c);
// in: src [outer, m, inner], index [m]; out: [outer, n, inner], zeroed first. The gradient of index_select.
void index_add_any(const Call& c);
inline void index_add(const Call& c) { widened(c, &index_add_any); }
// in: contiguous rows; out: the first k of each row in order, and their places, i64. attrs.i[0] = 1: from the largest.
// Equal ones keep their order; a NaN is larger than any number.
void sort_any(const Call& c);
inline void sort(const Call& c) { widened(c, &sort_any); }
// in: contiguous matrices; out: zero above diagonal attrs.i[0]; below it when attrs.i[1] = 1
void tril(const Call& c);

}  // namespace rille::kernels
