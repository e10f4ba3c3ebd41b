"""Operations on lists of tensors, which take one call instead of one per tensor.

torch 2.15 has a public form of them, `torch.foreach`, as a beta.
"""

import torch

add = torch._foreach_add
add_ = torch._foreach_add_
mul = torch._foreach_mul
mul_ = torch._foreach_mul_
copy_ = torch._foreach_copy_
