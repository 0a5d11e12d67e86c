"""Muon for the matrices of the blocks, AdamW for all other parameters.

References
----------
.. [1] K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

STEPS = 5  # of the Newton-Schulz iteration
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalised(matrices: Tensor) -> Tensor:
    """Nearly orthogonal matrices with the singular vectors of the given (M, rows, columns)."""
    a, b, c = COEFFICIENTS
    x = matrices.to(torch.bfloat16 if matrices.is_cuda else matrices.dtype)
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        gram = torch.bmm(x, x.mT)
        x = a * x + torch.bmm(b * gram + c * torch.bmm(gram, gram), x)
    return (x.mT if tall else x).to(matrices.dtype)


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal; matrices of one shape are treated in one call."""

    def __init__(self, params: list[nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": 0.01})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update of all matrices."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = {}
            for p in group["params"]:
                by_shape.setdefault(p.shape, []).append(p)
            for params in by_shape.values():
                self._step_stack(params, group)

    def _step_stack(self, params: list[nn.Parameter], group: dict[str, Any]) -> None:
        grads = [p.grad for p in params]
        for p in params:
            if "momentum" not in self.state[p]:
                self.state[p]["momentum"] = torch.zeros_like(p)
        moments = [self.state[p]["momentum"] for p in params]
        torch._foreach_lerp_(moments, grads, 1 - group["momentum"])
        nesterov = torch._foreach_lerp(grads, moments, group["momentum"])
        rows, columns = params[0].shape
        stack = torch.stack(nesterov)
        if rows == 3 * columns:  # queries, keys and values are matrices of their own
            stack = stack.view(-1, columns, columns)
        update = orthogonalised(stack) * max(1.0, stack.shape[1] / stack.shape[2]) ** 0.5
        update = update.view(len(params), rows, columns)
        torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(params, list(update.unbind()), alpha=-group["lr"])


def optimisers(model: nn.Module, kind: str, lr: float) -> list[torch.optim.Optimizer]:
    """Muon with AdamW ("muon"), or AdamW alone ("adamw")."""
    fused = next(model.parameters()).is_cuda
    matrices = [p for n, p in model.named_parameters() if n.startswith("blocks.") and p.ndim == 2]
    chosen = {id(p) for p in matrices}
    if kind == "adamw":
        return [torch.optim.AdamW(model.parameters(), lr, betas=(0.9, 0.98), fused=fused)]
    others = [p for p in model.parameters() if id(p) not in chosen]
    adam = torch.optim.AdamW(others, lr / 20, betas=(0.9, 0.98), weight_decay=0.01, fused=fused)
    return [Muon(matrices, lr), adam]
