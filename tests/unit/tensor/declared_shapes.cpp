// Declarations: views, copies and joins
#include <algorithm>

#include "operation.hpp"

namespace rille::tensor::declared {

std::vector<Operation> shapes() {
  const auto a34 = Argument{dims({3, 4})};
  std::vector<Operation> r;
  const auto same = [](const std::vector<Numbers>& in) { return in[0]; };
  r.push_back({"reshape", {a34}, [](auto& t) { return reshape(t[0], dims({2, -1})); }, same});
  r.push_back({"reshape of a transpose",
               {{dims({3, 1, 4})}},
               [](auto& t) { return reshape(get(transpose(t[0], 0, 2)), dims({12})); },
               [](auto& in) {
                 Numbers out;
                 for (int j = 0; j < 4; ++j)
                   for (int i = 0; i < 3; ++i) out.push_back(in[0][i * 4 + j]);
                 return out;
               }});
  r.push_back({"permute", {{dims({2, 1, 3})}}, [](auto& t) { return permute(t[0], dims({1, 0, 2})); }, same});
  r.push_back({"narrow",
               {a34},
               [](auto& t) { return narrow(t[0], 1, 1, 2); },
               [](auto& in) { return Numbers{in[0][1], in[0][2], in[0][5], in[0][6], in[0][9], in[0][10]}; }});
  const auto each_step = [](std::int64_t start, std::int64_t end, std::int64_t step) {  // of the middle of [2, 7, 3]
    return Operation{"slice from " + std::to_string(start) + " in steps of " + std::to_string(step),
                     {{dims({2, 7, 3})}},
                     [=](auto& t) { return slice(t[0], 1, start, end, step); },
                     [=](auto& in) {
                       Numbers out;
                       for (int o = 0; o < 2; ++o)
                         for (auto j = start; j < end; j += step)
                           for (int i = 0; i < 3; ++i) out.push_back(in[0][std::size_t((o * 7 + j) * 3 + i)]);
                       return out;
                     }};
  };
  r.push_back(each_step(0, 7, 2));
  r.push_back(each_step(1, 6, 2));
  r.push_back(each_step(2, 7, 3));
  r.push_back(each_step(1, 2, 4));
  r.push_back({"select",
               {a34},
               [](auto& t) { return select(t[0], 0, -1); },
               [](auto& in) { return Numbers(in[0].begin() + 8, in[0].end()); }});
  r.push_back({"expand",
               {{dims({2, 1})}},
               [](auto& t) {
                 return expand(t[0], dims({3, -1, 2}));
               },
               [](auto& in) {
                 const double a = in[0][0], b = in[0][1];
                 return Numbers{a, a, b, b, a, a, b, b, a, a, b, b};
               }});
  r.push_back({"cat",
               {a34, {dims({3, 2})}},
               [](auto& t) {
                 return cat({t[0], t[1]}, 1);
               },
               [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 3; ++i) {
                   out.insert(out.end(), in[0].begin() + i * 4, in[0].begin() + i * 4 + 4);
                   out.insert(out.end(), in[1].begin() + i * 2, in[1].begin() + i * 2 + 2);
                 }
                 return out;
               }});
  r.push_back({"chunk",
               {a34},
               [](auto& t) { return add(get(chunk(t[0], 2, 1))[1], 0.5); },
               [](auto& in) {
                 return Numbers{in[0][2] + .5, in[0][3] + .5,  in[0][6] + .5,
                                in[0][7] + .5, in[0][10] + .5, in[0][11] + .5};
               }});
  return r;
}

}  // namespace rille::tensor::declared
