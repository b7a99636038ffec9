// einsum: contracts the operands from left to right by matrix products.
#include <algorithm>
#include <map>

#include "runtime/compute/tensor/check.hpp"

namespace rille::tensor {

namespace {

struct Term {
  std::string letters;  // one letter for each dimension of `tensor`
  Tensor tensor;
};

struct Equation {
  std::vector<std::string> in;
  std::string out;
};

Result<Equation> parse(const std::string& text) {
  std::string plain;
  for (const char c : text)
    if (c != ' ') plain += c;
  const auto refuse = [&](const std::string& why) { return bad(fmt::format("einsum: \"{}\": {}", text, why)); };
  const auto arrow = plain.find("->");
  Equation e;
  std::string left = plain.substr(0, arrow);
  std::map<char, int> seen;
  for (std::size_t from = 0; from <= left.size();) {
    const auto comma = std::min(left.find(',', from), left.size());
    e.in.push_back(left.substr(from, comma - from));
    from = comma + 1;
  }
  for (const auto& letters : e.in) {
    for (const char c : letters) {
      if (!std::isalpha(static_cast<unsigned char>(c))) return refuse(fmt::format("'{}' is not a letter", c));
      if (std::count(letters.begin(), letters.end(), c) > 1)
        return refuse(fmt::format("'{}' is named twice in one operand", c));
      ++seen[c];
    }
  }
  if (arrow == std::string::npos) {
    for (const auto& [c, times] : seen)
      if (times == 1) e.out += c;  // a letter that occurs once is in the result, in alphabetical order
    return e;
  }
  e.out = plain.substr(arrow + 2);
  for (const char c : e.out) {
    if (!seen.contains(c)) return refuse(fmt::format("'{}' of the result is in no operand", c));
    if (std::count(e.out.begin(), e.out.end(), c) > 1)
      return refuse(fmt::format("'{}' is named twice in the result", c));
  }
  return e;
}

// Checks that each letter has the same size in all operands.
Result<void> check_sizes(const std::string& text, const std::vector<Term>& terms) {
  std::map<char, const Term*> first;
  const auto size_in = [](const Term& t, char c) { return t.tensor.shape()[int(t.letters.find(c))]; };
  for (const auto& t : terms) {
    if (int(t.letters.size()) != t.tensor.rank()) {
      return bad(fmt::format("einsum: \"{}\": '{}' names {} dimensions of {}", text, t.letters, t.letters.size(),
                             to_string(t.tensor.shape())));
    }
    for (const char c : t.letters) {
      const auto [known, fresh] = first.try_emplace(c, &t);
      if (fresh || size_in(*known->second, c) == size_in(t, c)) continue;
      return bad(fmt::format("einsum: \"{}\": '{}' is {} in {} and {} in {}", text, c, size_in(*known->second, c),
                             to_string(known->second->tensor.shape()), size_in(t, c), to_string(t.tensor.shape())));
    }
  }
  return success();
}

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

// Sums over the letters that are not in `wanted`.
Result<Term> without(const Term& t, const std::string& wanted) {
  std::vector<int> gone;
  std::string left;
  for (int i = 0; i < int(t.letters.size()); ++i) {
    if (has(wanted, t.letters[std::size_t(i)])) left += t.letters[std::size_t(i)];
    else gone.push_back(i);
  }
  if (gone.empty()) return t;
  RILLE_TRY(const auto total, sum(t.tensor, gone));
  return Term{left, total};
}

Result<Tensor> ordered(const Term& t, const std::string& letters) {
  Dims order;
  for (const char c : letters) order.push(std::int64_t(t.letters.find(c)));
  return permute(t.tensor, order);
}

std::int64_t product(const Term& t, const std::string& letters) {
  std::int64_t n = 1;
  for (const char c : letters) n *= t.tensor.shape()[int(t.letters.find(c))];
  return n;
}

// Contracts two terms as a batched product [batch, mine, inner] x [batch, inner, yours].
Result<Term> contract(const Term& a, const Term& b, const std::string& wanted) {
  std::string batch, inner, mine, yours;
  for (const char c : a.letters) (!has(b.letters, c) ? mine : has(wanted, c) ? batch : inner) += c;
  for (const char c : b.letters)
    if (!has(a.letters, c)) yours += c;
  if (batch.size() + mine.size() + yours.size() > std::size_t(kernels::max_rank))
    return bad(fmt::format("einsum: the product of {} and {} has the dimensions {}: at most {} are possible", a.letters,
                           b.letters, batch + mine + yours, kernels::max_rank));
  const auto n = product(a, batch), k = product(a, inner);
  RILLE_TRY(const auto x, ordered(a, batch + mine + inner));
  RILLE_TRY(const auto y, ordered(b, batch + inner + yours));
  RILLE_TRY(const auto left, reshape(x, dims_of({n, product(a, mine), k})));
  RILLE_TRY(const auto right, reshape(y, dims_of({n, k, product(b, yours)})));
  RILLE_TRY(const auto together, matmul(left, right));
  Dims shape;
  for (const char c : batch + mine) shape.push(product(a, std::string(1, c)));
  for (const char c : yours) shape.push(product(b, std::string(1, c)));
  RILLE_TRY(const auto seen, view(together, shape));
  return Term{batch + mine + yours, seen};
}

}  // namespace

Result<Tensor> einsum(const std::string& text, const std::vector<Tensor>& operands) {
  for (const auto& t : operands) RILLE_CHECK(need("einsum", t));
  for (std::size_t i = 1; i < operands.size(); ++i) {
    RILLE_CHECK(need_floats("einsum", operands[0], operands[i]));
    if (!operands[i].graph().modes().autocast) RILLE_CHECK(need_same_dtype("einsum", operands[0], operands[i]));
  }
  RILLE_TRY(const auto equation, parse(text));
  if (equation.in.size() != operands.size()) {
    return bad(fmt::format("einsum: \"{}\" names {} operands, not {}", text, equation.in.size(), operands.size()));
  }
  std::vector<Term> terms;
  for (std::size_t i = 0; i < operands.size(); ++i) terms.push_back({equation.in[i], operands[i]});
  RILLE_CHECK(check_sizes(text, terms));
  // Letters that the result or a later operand has must be kept.
  const auto wanted_after = [&](std::size_t i) {
    std::string letters = equation.out;
    for (std::size_t j = i + 1; j < terms.size(); ++j) letters += terms[j].letters;
    return letters;
  };
  RILLE_TRY(Term total, without(terms[0], wanted_after(0)));
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const auto wanted = wanted_after(i);
    RILLE_TRY(const Term next, without(terms[i], wanted + total.letters));
    RILLE_TRY(const Term alone, without(total, wanted + next.letters));
    RILLE_TRY(total, contract(alone, next, wanted));
  }
  RILLE_TRY(const Term left, without(total, equation.out));
  return ordered(left, equation.out);
}

}  // namespace rille::tensor
