/* Errors, told in the way of the program that the plug-in is in. */
#ifndef BENCH_PLUGIN_COMPLAIN_H
#define BENCH_PLUGIN_COMPLAIN_H

/* For a request that PyTorch made: raises PyTorch's own C++ error with that sentence, which Python
 * sees as a RuntimeError, and does not return. Where PyTorch is not in the process, or does not
 * offer it: writes the sentence on standard error and returns. No lock may be held. */
void complain_to_torch(const char *sentence);

/* For a request that CuPy made through its C functions, which hold the interpreter's lock: a
 * MemoryError with that sentence, which CuPy raises when the function returns NULL. Where there is
 * no interpreter, or its lock is not held: writes the sentence on standard error. */
void complain_to_python(const char *sentence);

#endif
