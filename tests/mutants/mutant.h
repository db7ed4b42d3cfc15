/* The switch of a build with mutants: MUTANT(n) is true if the environment has MUTANT=n. Each
 * changed expression is written as (MUTANT(n) ? (changed) : (original)), so one build has all
 * mutants. With MUTANTS_REACHED=FILE, byte n of that file becomes 1 when the program reaches mutant
 * n. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

extern __attribute__((visibility("default"))) int mutant_active;
extern __attribute__((visibility("default"))) unsigned char *mutant_reached;

static inline int mutant_is(int number)
{
    mutant_reached[number] = 1;
    return mutant_active == number;
}

#ifdef __cplusplus
}
#endif

#define MUTANT(number) mutant_is(number)
