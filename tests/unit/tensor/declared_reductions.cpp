// Declarations: reductions, and what runs along one dimension
#include <algorithm>

#include "operation.hpp"

namespace rille::tensor::declared {

std::vector<Operation> reductions() {
  const auto a34 = Argument{dims({3, 4})};
  std::vector<Operation> r;
  const auto columns = [](const Numbers& x, auto f, double start) {
    Numbers out(4, start);
    for (int i = 0; i < 12; ++i) out[i % 4] = f(out[i % 4], x[i]);
    return out;
  };
  const auto plus = [](double x, double y) { return x + y; };
  const auto greater = [](double x, double y) { return std::max(x, y); };
  const auto less = [](double x, double y) { return std::min(x, y); };
  r.push_back({"sum",
               {a34},
               [](auto& t) { return sum(t[0]); },
               [](auto& in) {
                 double s = 0;
                 for (double x : in[0]) s += x;
                 return Numbers{s};
               }});
  r.push_back({"sum of rows",
               {a34},
               [](auto& t) { return sum(t[0], {0}); },
               [=](auto& in) { return columns(in[0], plus, 0); }});
  r.push_back({"mean, kept", {a34}, [](auto& t) { return mean(t[0], {-1}, true); }, [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 3; ++i)
                   out.push_back((in[0][i * 4] + in[0][i * 4 + 1] + in[0][i * 4 + 2] + in[0][i * 4 + 3]) / 4);
                 return out;
               }});
  r.push_back({"max",
               {a34},
               [](auto& t) { return max(t[0], {0}); },
               [=](auto& in) { return columns(in[0], greater, -1e9); }});
  r.push_back({"min",
               {a34},
               [](auto& t) { return min(t[0], {0}); },
               [=](auto& in) { return columns(in[0], less, 1e9); }});
  r.push_back({"argmax", {a34}, [](auto& t) { return cast(get(argmax(t[0], 1)), t[0].dtype()); }, [](auto& in) {
                 Numbers out;
                 for (int i = 0; i < 3; ++i)
                   out.push_back(double(std::max_element(in[0].begin() + i * 4, in[0].begin() + i * 4 + 4) -
                                        in[0].begin() - i * 4));
                 return out;
               }, false});
  r.push_back({"softmax",
               {a34},
               [](auto& t) { return softmax(t[0], -1); },
               [](auto& in) { return softmax_rows(in[0], 4); }});
  r.push_back({"softmax over the first",
               {{dims({4, 1})}},
               [](auto& t) { return softmax(t[0], 0); },
               [](auto& in) { return softmax_rows(in[0], 4); }});
  r.push_back({"log_softmax", {a34}, [](auto& t) { return log_softmax(t[0], 1); }, [](auto& in) {
                 auto y = softmax_rows(in[0], 4);
                 for (auto& v : y) v = std::log(v);
                 return y;
               }});
  return r;
}

}  // namespace rille::tensor::declared
