"""What programs are made of: for each operation of Rille a function that adds it to a program, with torch's side.
Where Rille differs from torch by design (docs/manual/tensors.md) torch's side does it Rille's way."""
import elementwise, networks, reductions, shapes  # each enters its operations
from table import OPERATIONS
