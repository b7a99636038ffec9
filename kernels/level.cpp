// Says that the kernels of this level are part of the program.
namespace rille::kernels::RILLE_ISA {
extern const bool built;
const bool built = true;
}  // namespace rille::kernels::RILLE_ISA
