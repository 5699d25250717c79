// ShapeProgram: what an entry assumes about sizes and numbers that vary, and which of them its function needs.
// In: the values of the tree's nodes, which have passed all other checks. Out: yes or no, and Python numbers.
//
// The inputs are gathered into an array first (the sizes, strides and offsets of tensors; ints; floats); each check is
// an expression over them in postfix form. No Python code runs. What does not fit 64 bits makes a check fail.
#pragma once
#include "ref.h"

#include <cstdint>
#include <vector>

namespace framejit {

struct Number {
  bool is_float = false;
  int64_t i = 0;
  double f = 0;
  double real() const { return is_float ? f : static_cast<double>(i); }
};

enum class ShapeOp : uint8_t {
  Load, Int, Float, Add, Sub, Mul, FloorDiv, Mod, TrueDiv, Pow, Min, Max, Neg, Abs, Eq, Ne, Lt, Le, Gt, Ge, And, Or,
  Not, Where, Floor, Ceil, Trunc, Round, ToFloat, LeftShift, RightShift, BitAnd, BitOr, BitXor, Sqrt,
  Sin, Cos, Tan, Sinh, Cosh, Tanh, Asin, Acos, Atan, Log2, Exp, Log, Log10, RoundTo, Single
};

enum class ShapeInput : uint8_t { Size, Stride, Offset, Int, Float };

class ShapeProgram {
 public:
  // Parses ([(node, kind, dim)], [[op, (op, argument), ...]], [input index]). -1 with an exception if malformed.
  int parse(PyObject* spec, int node_count);

  // `value_of(node)`: a borrowed reference. Fills `outputs` (new references) if every check holds. `*failed`, when
  // given: the first check that does not.
  template <typename ValueOf>
  bool evaluate(const ValueOf& value_of, PyObject** outputs, int* failed = nullptr) const {
    constexpr size_t kOnStack = 32;
    Number on_stack[kOnStack];
    std::vector<Number> on_heap;
    Number* numbers = on_stack;
    if (inputs_.size() > kOnStack) {
      on_heap.resize(inputs_.size());
      numbers = on_heap.data();
    }
    if (failed) *failed = -1;
    for (size_t i = 0; i < inputs_.size(); i++) {
      if (!read(inputs_[i], value_of(inputs_[i].node), &numbers[i])) return false;
    }
    return run(numbers, failed) && (outputs == nullptr || give(numbers, outputs));
  }

  int output_count() const { return static_cast<int>(outputs_.size()); }
  // The nodes that inputs are read from.
  std::vector<int> nodes() const;
  // A node that check `index` (-1: the first input) is about.
  int node_of(int index) const;

 private:
  struct Input {
    int node;
    ShapeInput kind;
    int64_t dim;
  };
  struct Step {
    ShapeOp op;
    int64_t i = 0;
    double f = 0;
  };
  using Expression = std::vector<Step>;

  static bool read(const Input& input, PyObject* value, Number* number);
  bool run(const Number* numbers, int* failed) const;
  bool give(const Number* numbers, PyObject** outputs) const;
  static bool holds(const Expression& expression, const Number* numbers);
  int parse_expression(PyObject* spec, Expression* expression) const;

  std::vector<Input> inputs_;
  std::vector<Expression> checks_;
  std::vector<int> outputs_;
};

}  // namespace framejit
