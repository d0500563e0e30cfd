"""TorchScript compiles the text of a function, not its code. In a patched file the text holds probes, which no script
can call: torch is given the lines as they were. A scripted function therefore has no probes; its calls from Python do.

    y = og("m.mul:77ab", x) * 2      torch.jit.script reads `y = x * 2`, at the same line

Counterexample: under the import hook the file on disk is the original, and nothing is to be taken out."""

import functools
import linecache
import sys

from opguard.load import rewrite

# These have taken the function over by name.
_READERS = ("torch._sources", "torch._jit_internal", "torch.jit.annotations", "torch.jit.frontend", "torch.serialization")


def _as_they_were(lines, first, filename):
    """The lines of a file from number `first` on, without probes where it has some."""
    if filename is None or not any("og" in line for line in lines):
        return lines
    text = linecache.getlines(filename)
    at = max(first - 1, 0)
    if text[at : at + len(lines)] != lines:
        return lines
    plain = rewrite.without_probes("".join(text))
    return lines if plain is None else [line + "\n" for line in plain[at : at + len(lines)]]


def install(sources):
    """Right after torch._sources has been imported."""
    inner = sources.get_source_lines_and_file

    @functools.wraps(inner)
    def get_source_lines_and_file(*args, **kwargs):
        lines, first, filename = inner(*args, **kwargs)
        try:
            return _as_they_were(lines, first, filename), first, filename
        except (SyntaxError, ValueError):  # no file of Python's, or not one any more
            return lines, first, filename

    for name in _READERS:
        module = sys.modules.get(name)
        if getattr(module, "get_source_lines_and_file", None) is inner:
            module.get_source_lines_and_file = get_source_lines_and_file
