#!/bin/bash
# Compiles the kernels of device cuda. Usage: bench/cuda/kernels.sh NVCC OUT
# OUT holds machine code for the first architecture of each family that the toolkit knows, which also
# runs on later ones of the family, and PTX, which the driver compiles for all others.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -u
nvcc=$1 out=$2
mapfile -t archs < <("$nvcc" --list-gpu-arch | sed 's/compute_//' | sort -n |
    awk '$1 >= 70 && int($1 / 10) != family { print; family = int($1 / 10) }')
# One pass of the compiler makes the code of all families but that of the H100 (9.x), whose times were measured and
# which has a pass of its own. A pass for each would take as long as the rest of the build.
others=compute_${archs[0]}
code=()
for arch in "${archs[@]}"; do
    case $arch in
    9?) code+=(-gencode "arch=compute_$arch,code=sm_$arch") ;;
    *) others+=,sm_$arch ;;
    esac
done
code+=(-gencode "arch=compute_${archs[0]},code=[$others]")
"$nvcc" -fatbin -std=c++17 -O3 -I. -Xfatbin -compress-all -Wno-deprecated-gpu-targets --threads 2 \
    "${code[@]}" -o "$out" bench/cuda/kernels.cu ||
    { echo 'nvcc failed; "make NVCC=" builds without the kernels' >&2; exit 1; }
