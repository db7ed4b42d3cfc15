"""The order of derivatives of derivatives.

Autograd runs the gradients of the latest operators first, by a number that each thread counts for itself. On a card
the operators of a backward pass get theirs in the thread of that pass, which has made few; here one thread makes all.
"""

import torch

RENUMBERED = [False]  # whether any node has another number than the one that it was made with
OWN = "allocrig number"


def number_of(node):
    """The number that a node was made with."""
    return node.metadata.get(OWN, node._sequence_nr()) if RENUMBERED[0] else node._sequence_nr()


class BackwardThread:
    """Counts the nodes that the thread of backward passes on a card has made."""

    def __init__(self):
        self.made, self.first = 0, torch.autograd._get_sequence_nr()  # what the tracer itself has made does not count

    def passed(self, start, outputs, found):
        """A backward pass has ended. start: the number of the first node that it could make; outputs: what it began
        with; found: its gradients, if it does not add them to those of the leaves."""
        end = torch.autograd._get_sequence_nr()
        if end == start:
            return
        before, self.made = self.made, self.made + end - start
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return
        roots = [t.grad_fn for t in found or () if isinstance(t, torch.Tensor)] or leaves(outputs)
        for node in between(roots, start, end):
            number = node._sequence_nr()
            node.metadata[OWN] = number
            RENUMBERED[0] = True
            node._set_sequence_nr(self.first + 2 * before + number - start)  # twice: they count in the main thread here


def reachable(roots, enters):
    """The nodes from which a graph of gradients goes on."""
    todo, seen = [n for n in roots if n is not None], set()
    while todo:
        node = todo.pop()
        if node in seen or not enters(node):
            continue
        seen.add(node)
        yield node
        todo += [n for n, _ in node.next_functions if n is not None]


def between(roots, start, end):
    return list(reachable(roots, lambda node: start <= node._sequence_nr() < end))


def leaves(outputs):
    """Where the gradients of the leaves of a graph come from, if they have a graph."""
    roots = [t.grad_fn for t in outputs if isinstance(t, torch.Tensor)]
    grads = [getattr(n, "variable", None) for n in reachable(roots, lambda node: True)]
    return [v.grad.grad_fn for v in grads if v is not None and v.grad is not None]
