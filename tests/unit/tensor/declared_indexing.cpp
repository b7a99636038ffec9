// Declarations: choosing, placing and ordering elements by number, and shapes made of other shapes.
#include <algorithm>
#include <numeric>

#include "operation.hpp"

namespace rille::tensor::declared {

namespace {

// The numbers in `places` of the input, in that order; -1 stands for zero.
Reference picked(std::vector<int> places) {
  return [places](const std::vector<Numbers>& in) {
    Numbers out;
    for (const int p : places) out.push_back(p < 0 ? 0 : in[0][std::size_t(p)]);
    return out;
  };
}

Operation choose(const char* name, const Dims& shape, std::function<Result<Tensor>(const Tensor&)> f,
                 std::vector<int> places) {
  return {name, {{shape}}, [f](auto& t) { return f(t[0]); }, picked(std::move(places))};
}

// Of whole numbers apart, so that ranks are clear in every type.
Operation order(const char* name, std::function<Result<Sorted>(const Tensor&)> f, bool descending, int k) {
  const auto apart = [](const Tensor& t) {
    const auto steps = ids_of(t, {3, 9, 1, 5, 0, 4, 8, 2, 6, 7}, dims({2, 5}), t.dtype());
    return get(add(get(mul(t, 0.125)), steps));
  };
  return {name,
          {{dims({2, 5}), -1, 1}},
          [=](auto& t) { return add(get(f(apart(t[0]))).values, get(cast(get(f(apart(t[0]))).places, t[0].dtype()))); },
          [=](auto& in) {
            const double steps[] = {3, 9, 1, 5, 0, 4, 8, 2, 6, 7};
            Numbers out;
            for (int r = 0; r < 2; ++r) {
              Numbers row;
              for (int i = 0; i < 5; ++i) row.push_back(in[0][std::size_t(r * 5 + i)] / 8 + steps[r * 5 + i]);
              std::vector<int> places(5);
              std::iota(places.begin(), places.end(), 0);
              std::sort(places.begin(), places.end(),
                        [&](int a, int b) { return descending ? row[a] > row[b] : row[a] < row[b]; });
              for (int i = 0; i < k; ++i) out.push_back(row[places[i]] + places[i]);
            }
            return out;
          }};
}

void by_number(std::vector<Operation>& r) {
  const Dims d34 = dims({3, 4});
  r.push_back(choose("gather", d34,
                     [](auto& t) {
                       return gather(t, 1, ids_of(t, {3, 0, 0, 2, 1, 1}, dims({3, 2})));
                     },
                     {3, 0, 4, 6, 9, 9}));
  r.push_back(choose("gather of rows", d34,
                     [](auto& t) {
                       return gather(t, 0, ids_of(t, {2, 0, 1, 2, 2, 2}, dims({2, 3}), DType::i32));
                     },
                     {8, 1, 6, 8, 9, 10}));
  r.push_back(choose("index_select", d34,
                     [](auto& t) {
                       return index_select(t, 1, ids_of(t, {2, 2, 0}, dims({3})));
                     },
                     {2, 2, 0, 6, 6, 4, 10, 10, 8}));
  r.push_back(choose("index_select of rows", d34,
                     [](auto& t) {
                       return index_select(t, 0, ids_of(t, {2, 0, 2}, dims({3}), DType::u8));
                     },
                     {8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11}));
  for (auto& o : r) o.types = numbers_of_all_types(), o.arguments[0].low = 0, o.arguments[0].high = 100;
  r.push_back({"scatter",
               {{d34}, {dims({3, 2})}},
               [](auto& t) {
                 return scatter(t[0], 1, ids_of(t[0], {3, 0, 1, 2, 1, 0}, dims({3, 2})), t[1]);
               },
               [](auto& in) {
                 Numbers out = in[0];
                 const int places[] = {3, 0, 5, 6, 9, 8};
                 for (int i = 0; i < 6; ++i) out[places[i]] = in[1][i];
                 return out;
               }});
  r.push_back({"scatter_add",
               {{d34}, {dims({3, 2})}},
               [](auto& t) {
                 return scatter(t[0], 1, ids_of(t[0], {3, 3, 1, 2, 1, 1}, dims({3, 2})), t[1], true);
               },
               [](auto& in) {
                 Numbers out = in[0];
                 const int places[] = {3, 3, 5, 6, 9, 9};
                 for (int i = 0; i < 6; ++i) out[places[i]] += in[1][i];
                 return out;
               }});
  r.push_back({"scatter_add of rows",
               {{d34}, {dims({2, 4})}},
               [](auto& t) {
                 return scatter(t[0], 0, ids_of(t[0], {2, 0, 1, 1, 2, 1, 1, 0}, dims({2, 4})), t[1], true);
               },
               [](auto& in) {
                 Numbers out = in[0];
                 const int rows[] = {2, 0, 1, 1, 2, 1, 1, 0};
                 for (int i = 0; i < 8; ++i) out[rows[i] * 4 + i % 4] += in[1][i];
                 return out;
               }});
  r.push_back({"one_hot",
               {{dims({3}), 0, 5}},
               [](auto& t) { return one_hot(get(cast(t[0], DType::i64)), 5); },
               [](auto& in) {
                 Numbers out(15, 0);
                 for (int i = 0; i < 3; ++i) out[i * 5 + int(in[0][i])] = 1;
                 return out;
               },
               false,
               numbers_of_all_types()});
}

}  // namespace

std::vector<Operation> indexing() {
  std::vector<Operation> r;
  by_number(r);
  r.push_back(order(
      "sort", [](auto& t) { return sort(t, 1); }, false, 5));
  r.push_back(order(
      "sort, descending", [](auto& t) { return sort(t, -1, true); }, true, 5));
  r.push_back(order(
      "topk", [](auto& t) { return topk(t, 2, 1); }, true, 2));
  r.push_back(order(
      "topk, smallest", [](auto& t) { return topk(t, 3, 1, false); }, false, 3));
  r.push_back({"sort of columns",
               {{dims({3, 2})}},
               [](auto& t) { return sort(t[0], 0).value().values; },
               [](auto& in) {
                 Numbers out(6);
                 for (std::size_t c = 0; c < 2; ++c) {
                   Numbers column{in[0][c], in[0][2 + c], in[0][4 + c]};
                   std::sort(column.begin(), column.end());
                   for (std::size_t i = 0; i < 3; ++i) out[i * 2 + c] = column[i];
                 }
                 return out;
               }});
  const Dims d34 = dims({3, 4});
  r.push_back(choose("tril", d34, [](auto& t) { return tril(t); }, {0, -1, -1, -1, 4, 5, -1, -1, 8, 9, 10, -1}));
  r.push_back(
      choose("tril, below", d34, [](auto& t) { return tril(t, -2); }, {-1, -1, -1, -1, -1, -1, -1, -1, 8, -1, -1, -1}));
  r.push_back(
      choose("triu, above", d34, [](auto& t) { return triu(t, 1); }, {-1, 1, 2, 3, -1, -1, 6, 7, -1, -1, -1, 11}));
  r.push_back(choose("triu of a batch", dims({2, 1, 2}), [](auto& t) { return triu(t, 1); }, {-1, 1, -1, 3}));
  r.push_back(choose("flip", d34, [](auto& t) { return flip(t, {1}); }, {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8}));
  r.push_back(choose("flip of both", dims({2, 3}), [](auto& t) { return flip(t, {0, -1}); }, {5, 4, 3, 2, 1, 0}));
  r.push_back(choose("roll", dims({2, 3}), [](auto& t) { return roll(t, 1, 1); }, {2, 0, 1, 5, 3, 4}));
  r.push_back(choose("roll back", dims({2, 3}), [](auto& t) { return roll(t, -4, 1); }, {1, 2, 0, 4, 5, 3}));
  r.push_back(choose("tile", dims({2, 2}),
                     [](auto& t) {
                       return tile(t, dims({2, 1, 2}));
                     },
                     {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3}));
  r.push_back(choose("repeat_interleave", dims({2, 2}), [](auto& t) { return repeat_interleave(t, 2, 1); },
                     {0, 0, 1, 1, 2, 2, 3, 3}));
  r.push_back(choose("flatten", dims({2, 1, 2}), [](auto& t) { return flatten(t, 0, 1); }, {0, 1, 2, 3}));
  r.push_back(choose("pad", dims({2, 2}),
                     [](auto& t) {
                       return pad(t, {1, 0, 0, 1});
                     },
                     {-1, 0, 1, -1, 2, 3, -1, -1, -1}));
  r.push_back(choose("split", dims({2, 4}),
                     [](auto& t) {
                       return add(get(split(t, {1, 3}, 1))[1], 0);
                     },
                     {1, 2, 3, 5, 6, 7}));
  r.push_back({"stack",
               {{dims({2, 2})}, {dims({2, 2})}},
               [](auto& t) {
                 return stack({t[0], t[1]}, 1);
               },
               [](auto& in) {
                 return Numbers{in[0][0], in[0][1], in[1][0], in[1][1], in[0][2], in[0][3], in[1][2], in[1][3]};
               }});
  return r;
}

}  // namespace rille::tensor::declared
