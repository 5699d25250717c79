// See shape_program.h.
#include "shape_program.h"
#include "tensor_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace framejit {

static constexpr size_t kMaxDepth = 64;

static const struct {
  const char* name;
  ShapeOp op;
  int operands;
} kOps[] = {
    {"load", ShapeOp::Load, 0},        {"int", ShapeOp::Int, 0},          {"float", ShapeOp::Float, 0},
    {"add", ShapeOp::Add, 2},          {"sub", ShapeOp::Sub, 2},          {"mul", ShapeOp::Mul, 2},
    {"floordiv", ShapeOp::FloorDiv, 2}, {"mod", ShapeOp::Mod, 2},         {"truediv", ShapeOp::TrueDiv, 2},
    {"pow", ShapeOp::Pow, 2},          {"min", ShapeOp::Min, 2},          {"max", ShapeOp::Max, 2},
    {"neg", ShapeOp::Neg, 1},          {"abs", ShapeOp::Abs, 1},          {"eq", ShapeOp::Eq, 2},
    {"ne", ShapeOp::Ne, 2},            {"lt", ShapeOp::Lt, 2},            {"le", ShapeOp::Le, 2},
    {"gt", ShapeOp::Gt, 2},            {"ge", ShapeOp::Ge, 2},            {"and", ShapeOp::And, 2},
    {"or", ShapeOp::Or, 2},            {"not", ShapeOp::Not, 1},          {"where", ShapeOp::Where, 3},
    {"floor", ShapeOp::Floor, 1},      {"ceil", ShapeOp::Ceil, 1},        {"trunc", ShapeOp::Trunc, 1},
    {"round", ShapeOp::Round, 1},      {"to_float", ShapeOp::ToFloat, 1}, {"lshift", ShapeOp::LeftShift, 2},
    {"rshift", ShapeOp::RightShift, 2}, {"bitand", ShapeOp::BitAnd, 2},   {"bitor", ShapeOp::BitOr, 2},
    {"bitxor", ShapeOp::BitXor, 2},    {"sqrt", ShapeOp::Sqrt, 1},
    {"sin", ShapeOp::Sin, 1},          {"cos", ShapeOp::Cos, 1},          {"tan", ShapeOp::Tan, 1},
    {"sinh", ShapeOp::Sinh, 1},        {"cosh", ShapeOp::Cosh, 1},        {"tanh", ShapeOp::Tanh, 1},
    {"asin", ShapeOp::Asin, 1},        {"acos", ShapeOp::Acos, 1},        {"atan", ShapeOp::Atan, 1},
    {"log2", ShapeOp::Log2, 1},        {"exp", ShapeOp::Exp, 1},          {"log", ShapeOp::Log, 1},
    {"log10", ShapeOp::Log10, 1},      {"round_to", ShapeOp::RoundTo, 2},   {"single", ShapeOp::Single, 1},
};

static int operands_of(ShapeOp op) {
  for (auto& row : kOps) {
    if (row.op == op) return row.operands;
  }
  return 0;
}

// ---- parsing --------------------------------------------------------------------------------------------------

int ShapeProgram::parse_expression(PyObject* spec, Expression* expression) const {
  Ref steps = Ref::steal(PySequence_Tuple(spec));
  if (!steps) return -1;
  int depth = 0;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(steps.get()); k++) {
    PyObject* step = PyTuple_GET_ITEM(steps.get(), k);
    PyObject* argument = nullptr;
    PyObject* name = step;
    if (PyTuple_Check(step) && PyTuple_GET_SIZE(step) == 2) {
      name = PyTuple_GET_ITEM(step, 0);
      argument = PyTuple_GET_ITEM(step, 1);
    }
    Step made{};
    int operands = -1;
    for (auto& row : kOps) {
      if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, row.name) == 0) {
        made.op = row.op;
        operands = row.operands;
      }
    }
    bool leaf = made.op == ShapeOp::Load || made.op == ShapeOp::Int || made.op == ShapeOp::Float;
    if (operands < 0 || leaf != (argument != nullptr)) {
      PyErr_Format(PyExc_ValueError, "unknown or incomplete step %R of a shape expression", step);
      return -1;
    }
    if (made.op == ShapeOp::Float) {
      made.f = PyFloat_AsDouble(argument);
    } else if (leaf) {
      made.i = PyLong_AsLongLong(argument);
    }
    if (PyErr_Occurred()) return -1;
    bool known = made.op != ShapeOp::Load || (made.i >= 0 && made.i < static_cast<int64_t>(inputs_.size()));
    depth += 1 - operands;
    if (!known || depth < 1 || depth > static_cast<int>(kMaxDepth)) {
      PyErr_Format(PyExc_ValueError, "step %R of a shape expression does not fit", step);
      return -1;
    }
    expression->push_back(made);
  }
  if (depth != 1) {
    PyErr_SetString(PyExc_ValueError, "a shape expression must leave one value");
    return -1;
  }
  return 0;
}

int ShapeProgram::parse(PyObject* spec, int node_count) {
  PyObject *inputs, *checks, *outputs;
  if (!PyTuple_Check(spec)) {
    PyErr_SetString(PyExc_TypeError, "shapes must be (inputs, checks, outputs)");
    return -1;
  }
  if (!PyArg_ParseTuple(spec, "O!O!O!:shapes", &PyList_Type, &inputs, &PyList_Type, &checks, &PyList_Type, &outputs)) {
    return -1;
  }
  static const struct {
    const char* name;
    ShapeInput kind;
  } kinds[] = {{"size", ShapeInput::Size}, {"stride", ShapeInput::Stride}, {"offset", ShapeInput::Offset},
               {"int", ShapeInput::Int},   {"float", ShapeInput::Float}};
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(inputs); k++) {
    int node;
    const char* name;
    long long dim;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(inputs, k), "isL:shapes", &node, &name, &dim)) return -1;
    const ShapeInput* kind = nullptr;
    for (auto& row : kinds) {
      if (strcmp(name, row.name) == 0) kind = &row.kind;
    }
    if (!kind || node < 0 || node >= node_count || dim < 0) {
      PyErr_Format(PyExc_ValueError, "shape input %zd does not fit the tree", k);
      return -1;
    }
    inputs_.push_back({node, *kind, dim});
  }
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(checks); k++) {
    checks_.emplace_back();
    if (parse_expression(PyList_GET_ITEM(checks, k), &checks_.back()) < 0) return -1;
  }
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(outputs); k++) {
    long index = PyLong_AsLong(PyList_GET_ITEM(outputs, k));
    if (index == -1 && PyErr_Occurred()) return -1;
    if (index < 0 || index >= static_cast<long>(inputs_.size())) {
      PyErr_Format(PyExc_ValueError, "shape output %zd is no input", k);
      return -1;
    }
    outputs_.push_back(static_cast<int>(index));
  }
  return 0;
}

std::vector<int> ShapeProgram::nodes() const {
  std::vector<int> all;
  for (const Input& input : inputs_) all.push_back(input.node);
  return all;
}

int ShapeProgram::node_of(int index) const {
  if (index >= 0 && index < static_cast<int>(checks_.size())) {
    for (const Step& step : checks_[static_cast<size_t>(index)]) {
      if (step.op == ShapeOp::Load) return inputs_[static_cast<size_t>(step.i)].node;
    }
  }
  return inputs_.empty() ? -1 : inputs_[0].node;
}

// ---- evaluation -----------------------------------------------------------------------------------------------

bool ShapeProgram::read(const Input& input, PyObject* value, Number* number) {
  if (value == nullptr) return false;
  number->is_float = input.kind == ShapeInput::Float;
  switch (input.kind) {
    case ShapeInput::Int: {
      if (!PyLong_CheckExact(value)) return false;
      int overflow = 0;
      number->i = PyLong_AsLongLongAndOverflow(value, &overflow);
      return overflow == 0;
    }
    case ShapeInput::Float:
      if (!PyFloat_CheckExact(value)) return false;
      number->f = PyFloat_AS_DOUBLE(value);
      return true;
    default:
      break;
  }
  auto* tensor = tensor_impl(value);  // its TensorCheck has passed
  if (tensor->has_symbolic_sizes_strides() || input.dim > tensor->dim()) return false;
  if (input.kind == ShapeInput::Offset) {
    number->i = tensor->storage_offset();
  } else {
    if (input.dim >= tensor->dim()) return false;
    number->i = (input.kind == ShapeInput::Size ? tensor->sizes() : tensor->strides())[input.dim];
  }
  return true;
}

bool ShapeProgram::give(const Number* numbers, PyObject** outputs) const {
  for (size_t k = 0; k < outputs_.size(); k++) {
    const Number& number = numbers[outputs_[k]];
    outputs[k] = number.is_float ? PyFloat_FromDouble(number.f) : PyLong_FromLongLong(number.i);
    if (outputs[k] == nullptr) {
      PyErr_Clear();
      while (k > 0) Py_DECREF(outputs[--k]);
      return false;
    }
  }
  return true;
}

bool ShapeProgram::run(const Number* numbers, int* failed) const {
  for (size_t k = 0; k < checks_.size(); k++) {
    if (!holds(checks_[k], numbers)) {
      if (failed) *failed = static_cast<int>(k);
      return false;
    }
  }
  return true;
}

static bool floor_divide(int64_t a, int64_t b, int64_t* quotient, int64_t* rest) {
  if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
  *quotient = a / b;
  *rest = a % b;
  if (*rest != 0 && (*rest < 0) != (b < 0)) {
    *quotient -= 1;
    *rest += b;
  }
  return true;
}

// As CPython divides floats: the rest has the sign of the divisor, a quotient of zero that of the exact one.
static bool floor_divide(double a, double b, double* quotient, double* rest) {
  if (b == 0) return false;
  *rest = std::fmod(a, b);
  *quotient = (a - *rest) / b;
  if (*rest == 0) {
    *rest = std::copysign(0.0, b);
  } else if ((b < 0) != (*rest < 0)) {
    *rest += b;
    *quotient -= 1.0;
  }
  if (*quotient == 0) {
    *quotient = std::copysign(0.0, a / b);
  } else {
    double floor = std::floor(*quotient);
    *quotient = *quotient - floor > 0.5 ? floor + 1.0 : floor;
  }
  return true;
}

// As CPython rounds to decimals: by way of the shortest text.
static bool round_to(double number, int64_t digits, double* out) {
  if (!std::isfinite(number) || digits < 0 || digits > 20) return false;
  char* text = PyOS_double_to_string(number, 'f', static_cast<int>(digits), 0, nullptr);
  if (text == nullptr) return PyErr_Clear(), false;
  *out = PyOS_string_to_double(text, nullptr, nullptr);
  PyMem_Free(text);
  return true;
}

static bool from_real(double real, Number* out) {
  if (!(real > -9.2e18 && real < 9.2e18)) return false;
  *out = {false, static_cast<int64_t>(real), 0};
  return true;
}

static bool power(int64_t base, int64_t exponent, int64_t* out) {
  if (exponent < 0) return false;
  *out = 1;
  for (; exponent > 0; exponent--) {
    if (__builtin_mul_overflow(*out, base, out)) return false;
    if (*out == 0 || (base == 1)) break;
  }
  return true;
}

// Exact where an int64 meets a double.
static int compare(const Number& a, const Number& b, bool* ordered) {
  *ordered = true;
  if (!a.is_float && !b.is_float) return a.i < b.i ? -1 : a.i > b.i;
  long double x = a.is_float ? a.f : static_cast<long double>(a.i);
  long double y = b.is_float ? b.f : static_cast<long double>(b.i);
  if (x != x || y != y) return *ordered = false, 0;
  return x < y ? -1 : x > y;
}

static bool apply(ShapeOp op, const Number* a, Number* out) {
  const Number& x = a[0];
  const Number& y = a[1];  // whatever is there, for unary operators
  auto truth = [&](bool value) {
    *out = {false, value, 0};
    return true;
  };
  auto real = [&](double value) {
    *out = {true, 0, value};
    return true;
  };
  auto integer = [&](int64_t value) {
    *out = {false, value, 0};
    return true;
  };
  auto is_true = [](const Number& n) { return n.is_float ? n.f != 0 : n.i != 0; };
  bool ordered = true, floats = x.is_float;
  int64_t result = 0, rest = 0;
  double quotient = 0, remainder = 0;
  if (operands_of(op) > 1 && op != ShapeOp::Where) floats = floats || y.is_float;
  switch (op) {
    case ShapeOp::Add:
      if (floats) return real(x.real() + y.real());
      return !__builtin_add_overflow(x.i, y.i, &result) && integer(result);
    case ShapeOp::Sub:
      if (floats) return real(x.real() - y.real());
      return !__builtin_sub_overflow(x.i, y.i, &result) && integer(result);
    case ShapeOp::Mul:
      if (floats) return real(x.real() * y.real());
      return !__builtin_mul_overflow(x.i, y.i, &result) && integer(result);
    case ShapeOp::FloorDiv:
      if (floats) return floor_divide(x.real(), y.real(), &quotient, &remainder) && real(quotient);
      return floor_divide(x.i, y.i, &result, &rest) && integer(result);
    case ShapeOp::Mod:
      if (floats) return floor_divide(x.real(), y.real(), &quotient, &remainder) && real(remainder);
      return floor_divide(x.i, y.i, &result, &rest) && integer(rest);
    case ShapeOp::TrueDiv: return y.real() != 0 && real(x.real() / y.real());
    case ShapeOp::Pow:
      if (floats) return real(std::pow(x.real(), y.real()));
      return power(x.i, y.i, &result) && integer(result);
    case ShapeOp::Min:
    case ShapeOp::Max: {
      int order = compare(x, y, &ordered);
      if (!ordered) return false;
      *out = (op == ShapeOp::Min ? order <= 0 : order >= 0) ? x : y;
      return true;
    }
    case ShapeOp::Neg:
      if (floats) return real(-x.f);
      return !__builtin_sub_overflow(int64_t{0}, x.i, &result) && integer(result);
    case ShapeOp::Abs:
      if (floats) return real(std::fabs(x.f));
      return x.i != INT64_MIN && integer(x.i < 0 ? -x.i : x.i);
    case ShapeOp::Eq: return truth(compare(x, y, &ordered) == 0 && ordered);
    case ShapeOp::Ne: return truth(compare(x, y, &ordered) != 0 || !ordered);
    case ShapeOp::Lt: return truth(compare(x, y, &ordered) < 0 && ordered);
    case ShapeOp::Le: return truth(compare(x, y, &ordered) <= 0 && ordered);
    case ShapeOp::Gt: return truth(compare(x, y, &ordered) > 0 && ordered);
    case ShapeOp::Ge: return truth(compare(x, y, &ordered) >= 0 && ordered);
    case ShapeOp::And: return truth(is_true(x) && is_true(y));
    case ShapeOp::Or: return truth(is_true(x) || is_true(y));
    case ShapeOp::Not: return truth(!is_true(x));
    case ShapeOp::Where:
      *out = is_true(x) ? a[1] : a[2];
      return true;
    case ShapeOp::Floor: return floats ? from_real(std::floor(x.f), out) : integer(x.i);
    case ShapeOp::Ceil: return floats ? from_real(std::ceil(x.f), out) : integer(x.i);
    case ShapeOp::Trunc: return floats ? from_real(std::trunc(x.f), out) : integer(x.i);
    case ShapeOp::Round: return floats ? from_real(std::nearbyint(x.f), out) : integer(x.i);
    case ShapeOp::ToFloat: return real(x.real());
    case ShapeOp::Single: return real(static_cast<float>(x.real()));
    case ShapeOp::LeftShift:
      return !floats && x.i >= 0 && y.i >= 0 && y.i < 62 && x.i <= (INT64_MAX >> y.i) && integer(x.i << y.i);
    case ShapeOp::RightShift: return !floats && y.i >= 0 && integer(x.i >> std::min<int64_t>(y.i, 63));
    case ShapeOp::BitAnd: return !floats && integer(x.i & y.i);
    case ShapeOp::BitOr: return !floats && integer(x.i | y.i);
    case ShapeOp::BitXor: return !floats && integer(x.i ^ y.i);
    case ShapeOp::Sqrt: return x.real() >= 0 && real(std::sqrt(x.real()));
    case ShapeOp::Sin: return real(std::sin(x.real()));
    case ShapeOp::Cos: return real(std::cos(x.real()));
    case ShapeOp::Tan: return real(std::tan(x.real()));
    case ShapeOp::Sinh: return real(std::sinh(x.real()));
    case ShapeOp::Cosh: return real(std::cosh(x.real()));
    case ShapeOp::Tanh: return real(std::tanh(x.real()));
    case ShapeOp::Asin: return real(std::asin(x.real()));
    case ShapeOp::Acos: return real(std::acos(x.real()));
    case ShapeOp::Atan: return real(std::atan(x.real()));
    case ShapeOp::Exp: return real(std::exp(x.real()));
    case ShapeOp::Log: return real(std::log(x.real()));
    case ShapeOp::Log10: return real(std::log10(x.real()));
    case ShapeOp::RoundTo: return x.is_float && round_to(x.f, y.i, &quotient) && real(quotient);
    case ShapeOp::Log2: return real(std::log2(x.real()));
    default: return false;
  }
}

bool ShapeProgram::holds(const Expression& expression, const Number* numbers) {
  Number stack[kMaxDepth + 2];
  size_t depth = 0;
  for (const Step& step : expression) {
    switch (step.op) {
      case ShapeOp::Load: stack[depth++] = numbers[step.i]; break;
      case ShapeOp::Int: stack[depth++] = {false, step.i, 0}; break;
      case ShapeOp::Float: stack[depth++] = {true, 0, step.f}; break;
      default: {
        depth -= static_cast<size_t>(operands_of(step.op));
        Number result;
        if (!apply(step.op, stack + depth, &result)) return false;
        stack[depth++] = result;
      }
    }
  }
  const Number& last = stack[0];
  return last.is_float ? last.f != 0 : last.i != 0;
}

}  // namespace framejit
