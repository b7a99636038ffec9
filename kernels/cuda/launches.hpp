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

void groups(const Call& c, Launcher& l, const Names& names);       // group.cpp: one kernel, or one by one

// rows.cpp: each row of the last dimension
void softmaxes(const Call& c, Launcher& l, const Names& names);
void softmax_grads(const Call& c, Launcher& l, const Names& names);
void cross_entropies(const Call& c, Launcher& l, const Names& names);
void cross_entropy_grads(const Call& c, Launcher& l, const Names& names);
void layer_norms(const Call& c, Launcher& l, const Names& names);
void layer_norm_grads(const Call& c, Launcher& l, const Names& names);
void rms_norms(const Call& c, Launcher& l, const Names& names);
void rms_norm_grads(const Call& c, Launcher& l, const Names& names);
void batch_norms(const Call& c, Launcher& l, const Names& names);
void batch_norm_grads(const Call& c, Launcher& l, const Names& names);

// optimizer.cpp
void increments(const Call& c, Launcher& l, const Names& names);
void adamws(const Call& c, Launcher& l, const Names& names);
void sgds(const Call& c, Launcher& l, const Names& names);
void lions(const Call& c, Launcher& l, const Names& names);
void averages(const Call& c, Launcher& l, const Names& names);
void grad_unscales(const Call& c, Launcher& l, const Names& names);
void loss_scales(const Call& c, Launcher& l, const Names& names);
void grad_norms(const Call& c, Launcher& l, const Names& names);
void grad_clips(const Call& c, Launcher& l, const Names& names);

// random.cpp
void uniforms(const Call& c, Launcher& l, const Names& names);
void normals(const Call& c, Launcher& l, const Names& names);
void integer_draws(const Call& c, Launcher& l, const Names& names);
void dropouts(const Call& c, Launcher& l, const Names& names);
void multinomials(const Call& c, Launcher& l, const Names& names);

// reduce.cpp
void sums(const Call& c, Launcher& l, const Names& names);
void prods(const Call& c, Launcher& l, const Names& names);
void amaxes(const Call& c, Launcher& l, const Names& names);
void amins(const Call& c, Launcher& l, const Names& names);
void argmaxes(const Call& c, Launcher& l, const Names& names);
void argmins(const Call& c, Launcher& l, const Names& names);
void cumsums(const Call& c, Launcher& l, const Names& names);
void prod_grads(const Call& c, Launcher& l, const Names& names);

// attention.cpp
void attentions(const Call& c, Launcher& l, const Names& names);
void attention_grads(const Call& c, Launcher& l, const Names& names);
void masked_attentions(const Call& c, Launcher& l, const Names& names);
void masked_attention_grads(const Call& c, Launcher& l, const Names& names);
void ropes(const Call& c, Launcher& l, const Names& names);

// convolution.cpp
void convolutions(const Call& c, Launcher& l, const Names& names);
void convolution_input_grads(const Call& c, Launcher& l, const Names& names);
void convolution_weight_grads(const Call& c, Launcher& l, const Names& names);
void max_pools(const Call& c, Launcher& l, const Names& names);
void max_pool_grads(const Call& c, Launcher& l, const Names& names);
void avg_pools(const Call& c, Launcher& l, const Names& names);
void avg_pool_grads(const Call& c, Launcher& l, const Names& names);

void fouriers(const Call& c, Launcher& l, const Names& names);     // fourier.cpp
void products(const Call& c, Launcher& l, const Names& names);     // matmul.cpp
void activated_products(const Call& c, Launcher& l, const Names& names);

// tables.cpp
void embeddings(const Call& c, Launcher& l, const Names& names);
void embedding_grads(const Call& c, Launcher& l, const Names& names);
void embedding_adds(const Call& c, Launcher& l, const Names& names);
void gathers(const Call& c, Launcher& l, const Names& names);
void scatters(const Call& c, Launcher& l, const Names& names);
void index_selects(const Call& c, Launcher& l, const Names& names);
void index_adds(const Call& c, Launcher& l, const Names& names);
void sorts(const Call& c, Launcher& l, const Names& names);
void trils(const Call& c, Launcher& l, const Names& names);

}  // namespace rille::kernels::cuda
