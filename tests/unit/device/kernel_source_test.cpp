// What is read out of a kernel's text, and what is put into it for the CPU.
#include "runtime/compute/device/kernel_source.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace rille::device {

namespace {
KernelSource read(std::string_view text) {
  auto r = read_kernel_source(text);
  REQUIRE(r.ok());
  CHECK(std::count(text.begin(), text.end(), '\n') == std::count(r->cpu_text.begin(), r->cpu_text.end(), '\n'));
  return *r;
}
std::string only(std::string_view text) {
  const auto s = read(text);
  REQUIRE(s.kernels.size() == 1);
  std::string out = s.kernels[0].name + "(";
  for (const auto& p : s.kernels[0].parameters) out += p.type + " " + p.name + ";";
  return out + ")";
}
}  // namespace

TEST_CASE("kernels are found with their parameters", "[unit][kernel]") {
  CHECK(only("__global__ void k(int n, const float* x, float *y) {}") == "k(int n;const float* x;float* y;)");
  CHECK(only("extern \"C\" __global__ void __launch_bounds__(256, 2) k(float*__restrict__ a){}") == "k(float* a;)");
  CHECK(only("__global__ void k() {}") == "k()");
  CHECK(only("__global__ void k(void) {}") == "k()");
  CHECK(only("__global__ static void k(unsigned long long n, unsigned) {}") == "k(unsigned long long n;unsigned ;)");
  CHECK(only("__global__ void k(const float* x = nullptr, float4 v = {1, 2}) {}") == "k(const float* x;float4 v;)");
  CHECK(only("__global__ void k(std::pair<int, float> p, float x[], int (*f)(int, int)) {}") ==
        "k(std::pair<int,float> p;float* x;int(*f)(int,int) ;)");
  CHECK(only("// __global__ void no(int)\n/* __global__ void no() */ const char* s = \"__global__ void no()\";\n"
             "__global__ void yes(int a) {}") == "yes(int a;)");
  CHECK(only("const char* s = R\"x(__global__ void no(\" )x\"; __global__ void yes() {}") == "yes()");
  CHECK(only("__global__ void k(int a);\n__global__ void k(int b) {}") == "k(int b;)");
}

TEST_CASE("templates, lines and C linkage are noted", "[unit][kernel]") {
  const auto s = read(
      "template <class T, int N = (3 > 2)>\n__global__ void a(T x) {}\n"
      "extern \"C\" __global__ void b() {}\ntemplate <> __global__ void a<float, 1>(float x) {}\n"
      "#define M(T) __global__ void T##_k(T* x) {}\n");
  REQUIRE(s.kernels.size() >= 2);
  CHECK(s.find("a")->is_template);
  CHECK(s.find("a")->line == 2);
  CHECK_FALSE(s.find("b")->is_template);
  CHECK(s.find("b")->is_c);
  CHECK(s.find("c") == nullptr);
}

TEST_CASE("what stands below #if 0, and in a macro's text, is no kernel", "[unit][kernel]") {
  const std::string f = "__global__ void f(float* x) {}\n", g = "__global__ void g(int n) {}\n";
  for (const std::string& text :
       {"#if 0\n" + g + "#endif\n" + f, "#if 1\n" + f + "#else\n" + g + "#endif\n",
        "#if false // don't\n" + g + "#elif 1\n" + f + "#else\n" + g + "#endif\n",
        "#if 0\n#if 1\n" + g + "#else\n" + g + "#endif\n#else\n" + f + "#endif\n",
        "#define G \\\n  __global__ void g(int n) {}\n" + f, "#if 0\n#define F __global__\n}}}\n#endif\n" + f}) {
    INFO(text);
    CHECK(only(text) == "f(float* x;)");
  }
  // A condition that may hold, holds.
  CHECK(read("#ifdef FAST\n" + f + "#else\n" + g + "#endif\n").kernels.size() == 2);
  CHECK(read("#if 0\n" + f).kernels.empty());
  CHECK(read("#endif\n#else\n" + f).kernels.size() == 1);
}

TEST_CASE("a macro may stand for __global__, or make whole kernels", "[unit][kernel]") {
  const auto s = read(
      "#define KERNEL extern \"C\" __global__ void\n#define INNER KERNEL\nKERNEL f(float* x) {}\n"
      "INNER g(int n) {}\n");
  REQUIRE(s.kernels.size() == 2);
  CHECK(s.find("f")->is_c);
  CHECK(s.find("g")->parameters[0].name == "n");
  CHECK_FALSE(s.makes_kernels);
  const auto made = read("#define K(n) __global__ void n(float* x) { x[0] = 1; }\nK(f)\nK(g)\n");
  CHECK(made.kernels.empty());
  CHECK(made.makes_kernels);
}

TEST_CASE("a global position becomes one word, where nothing binds closer", "[unit][kernel]") {
  const auto cpu = [](std::string_view text) { return read(text).cpu_text; };
  CHECK(cpu("int i = blockIdx.x * blockDim.x + threadIdx.x;") == "int i = rille_at_x;");
  CHECK(cpu("int i = threadIdx.y+blockDim.y*blockIdx.y;") == "int i = rille_at_y;");
  CHECK(cpu("a[blockDim.z*blockIdx.z+threadIdx.z]") == "a[rille_at_z]");
  CHECK(cpu("i = blockIdx.x * /* so */ blockDim.x\n + threadIdx.x;") == "i = rille_at_x\n;");
  for (const char* untouched :
       {"n - blockIdx.x * blockDim.x + threadIdx.x", "blockIdx.x * blockDim.x + threadIdx.x * 4",
        "(size_t)blockIdx.x * blockDim.x + threadIdx.x", "blockIdx.x * blockDim.y + threadIdx.x",
        "2 * threadIdx.x + blockIdx.x * blockDim.x", "threadIdx.x + blockIdx.x * blockDim.x / 2",
        "\"blockIdx.x * blockDim.x + threadIdx.x\"", "blockIdx.x * blockDim.x + threadIdx"}) {
    CHECK(cpu(untouched) == untouched);
  }
}

TEST_CASE("a source is flat when its threads know only their global position", "[unit][kernel]") {
  const auto flat = [](std::string body) { return read("__global__ void k(int* x) {" + body + "}").flat; };
  const std::string i = "int i = blockIdx.x * blockDim.x + threadIdx.x; ";
  CHECK(flat(i + "x[i] = i;"));
  CHECK(flat(i + "if (i < gridDim.x * blockDim.x) atomicAdd(x, 1);"));
  CHECK(flat("#include <math.h>\n" + i));
  CHECK_FALSE(flat(i + "x[i] = threadIdx.x;"));
  CHECK_FALSE(flat(i + "__syncthreads();"));
  CHECK_FALSE(flat(i + "x[i] = __shfl_sync(~0u, i, 0);"));
  CHECK_FALSE(flat(i + "assert(i < 5);"));
  CHECK_FALSE(flat("#include \"mine.cuh\"\n" + i));
}

TEST_CASE("dynamic shared memory becomes a pointer", "[unit][kernel]") {
  CHECK(read("void f() { extern __shared__ float s[]; }").cpu_text ==
        "void f() { float* const s = (float*)rille_shared(); (void)s; }");
  CHECK(read("void f() {\nextern __shared__ __align__(16)\nunsigned char s[];\n}").cpu_text ==
        "void f() {\nunsigned char* const s = (unsigned char*)rille_shared(); (void)s;\n\n}");
  const auto outside = read("namespace a { extern __shared__ int s[]; }").cpu_text;
  CHECK(outside.find("static __thread int* s;") != std::string::npos);
  CHECK(read("void f() { __shared__ float s[16]; }").cpu_text == "void f() { __shared__ float s[16]; }");
}

TEST_CASE("an unclosed comment, string or parameter list is an error with its line", "[unit][kernel]") {
  CHECK(read_kernel_source("\n/* a").error().message == "line 2: a comment that does not end");
  CHECK(read_kernel_source("x = \"a").error().message == "line 1: a string that does not end");
  CHECK(read_kernel_source("\n\n__global__ void k(int a").error().message ==
        "line 3: the parameter list of k has no closing parenthesis");
  CHECK(read_kernel_source(std::string_view("a\0b", 3)).error().kind == ErrorKind::invalid);
  CHECK(read_kernel_source(std::string(2 << 20, ' ')).error().kind == ErrorKind::invalid);
  CHECK(read_kernel_source(std::string(100'000, '{')).ok());
  CHECK(read_kernel_source("__global__").ok());
}

TEST_CASE("types are known by all their names", "[unit][kernel]") {
  const auto is = [](const char* type, const char* shown) { CHECK(describe(parameter_of(type)) == shown); };
  is("float", "float");
  is("const float*", "const float*");
  is("float const*", "const float*");
  is("float* const", "float*");
  is("unsigned", "unsigned int");
  is("unsigned long", "unsigned long long");
  is("std::uint32_t const *", "const unsigned int*");
  is("float4", "float4");
  is("const uint2*", "const uint2*");
  is("__nv_bfloat16*", "__nv_bfloat16*");
  is("half", "__half");
  is("void*", "void*");
  is("Particle*", "a type of its own*");
  is("float**", "a type of its own*");
  is("", "a type of its own");
  is("V<float const*>", "a type of its own");
  is("V<float const*>*", "a type of its own*");
  is("const V<float>*", "const a type of its own*");
  CHECK(parameter_types_of("void scale<float, (int)4>(float*, float const*, int)") ==
        std::vector<std::string>{"float*", "float const*", "int"});
  CHECK(parameter_types_of("k(std::pair<int, float>)") == std::vector<std::string>{"std::pair<int, float>"});
  CHECK(parameter_types_of("k()").empty());
  CHECK(parameter_types_of("k").empty());
  CHECK(parameter_types_of(")").empty());
}

TEST_CASE("the types of constants are read from the source where possible", "[unit][kernel]") {
  const auto is = [](const char* text, unsigned element) { CHECK(constant_element(text, "c") == element); };
  is("__constant__ float c[4];", rille_abi::f32);
  is("/* __constant__ int c; */ __constant__ float c[4]; // __constant__ int c[4];", rille_abi::f32);
  is("static __constant__ unsigned int a[2] = {1, 2}, c[f(1, 2)];", rille_abi::u32);
  is("double const __constant__ c = 3;", rille_abi::f64);
  is("__constant__ float d; __constant__ float* c;", rille_abi::other);
  is("__constant__ REAL c[4];", rille_abi::other);
  is("float c[4]; __constant__ float a[c];", rille_abi::other);
  is("__constant__", rille_abi::other);
  is("__constant__ c", rille_abi::other);
  is("__constant__ float a,", rille_abi::other);
  is("\"", rille_abi::other);
  CHECK(element_of_variable("float const [4]") == rille_abi::f32);
  CHECK(element_of_variable("double [2][4]") == rille_abi::f64);
  CHECK(element_of_variable("float*") == rille_abi::other);
}

}  // namespace rille::device
