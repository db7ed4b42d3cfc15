# allocrig. `make help` lists the targets. One file, not recursive over folders: sources are found
# by name, so a new one needs no line here. Build outputs go to .build/<variant>/, one folder per
# set of flags; a change of compiler or flags rebuilds that folder.

VERSION := 0.1.0
VARIANT ?= release
PREFIX  ?= /usr/local
SUITE   ?= $(if $(filter-out 0,$(QUICK)),workloads/suites/quick.ini)
RESULTS := results/latest
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 20
Q       := $(if $(filter-out 0,$(V)),,@)

# `CC ?= gcc` would keep make's built-in `cc`.
ifeq ($(origin CC),default)
CC := $(shell command -v gcc >/dev/null 2>&1 && echo gcc || echo cc)
endif
ifeq ($(origin CXX),default)
CXX := $(shell command -v g++ >/dev/null 2>&1 && echo g++ || echo c++)
endif
ifeq ($(VARIANT),fuzz)
CC := clang
endif

# ---- variants -----------------------------------------------------------------------------------

CFLAGS_release := -O2 -fno-tree-vectorize -g
CFLAGS_debug   := -O0 -g
CFLAGS_san     := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# Without relocations a program of this size starts in two thirds of the time; tests start thousands.
LDFLAGS_san    := -no-pie
CFLAGS_tsan    := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
CFLAGS_fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
VARIANTS       := release debug san tsan fuzz
ifeq ($(filter $(VARIANT),$(VARIANTS)),)
$(error unknown VARIANT "$(VARIANT)": choose one of $(VARIANTS))
endif

B    := .build/$(VARIANT)
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion

# ---- what is there ------------------------------------------------------------------------------
# Libraries are linked statically where the archive is there, so that a built tree can be carried
# to a machine that lacks them. HAVE_x is 1 or 0 in C too.

header  = $(shell printf '\043include <stddef.h>\n\043include <stdarg.h>\n\043include <setjmp.h>\n\043include <stdint.h>\n\043include <$(1)>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo 1 || echo 0)
archive = $(if $(findstring /,$(shell $(CC) -print-file-name=lib$(1).a)),-l:lib$(1).a,-l$(1))
program = $(if $(shell command -v $(1) 2>/dev/null),1,0)

HAVE_JANSSON   := $(call header,jansson.h)
HAVE_ZSTD      := $(call header,zstd.h)
HAVE_ZLIB      := $(call header,zlib.h)
HAVE_SQLITE3   := $(call header,sqlite3.h)
HAVE_CMOCKA    := $(call header,cmocka.h)
HAVE_BENCHMARK := $(if $(wildcard /usr/include/benchmark/benchmark.h /usr/local/include/benchmark/benchmark.h),1,0)
HAVE_GNUPLOT   := $(call program,gnuplot)
CUDA_INCLUDE   := $(firstword $(wildcard $(addsuffix /cuda.h,$(CUDA_HOME:%=%/include) /usr/local/cuda/include)))
CUDA_FLAGS     := $(if $(CUDA_INCLUDE),-isystem $(patsubst %/,%,$(dir $(CUDA_INCLUDE))))
HAVE_CUDA      := $(if $(CUDA_INCLUDE),1,$(call header,cuda.h))
NVCC           := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUPTI_INCLUDE  := $(firstword $(wildcard $(addsuffix /cupti.h,$(CUDA_HOME:%=%/include) $(CUDA_HOME:%=%/extras/CUPTI/include) \
                    $(addprefix /usr/local/cuda/,include targets/x86_64-linux/include targets/sbsa-linux/include extras/CUPTI/include))))
HAVE_CUPTI     := $(if $(CUPTI_INCLUDE),$(HAVE_CUDA),0)
HAVE_NVCC      := $(if $(NVCC),$(HAVE_CUDA),0)

LIBS := $(if $(filter 1,$(HAVE_JANSSON)),$(call archive,jansson)) \
        $(if $(filter 1,$(HAVE_ZSTD)),$(call archive,zstd)) \
        $(if $(filter 1,$(HAVE_ZLIB)),$(call archive,z)) \
        $(if $(filter 1,$(HAVE_SQLITE3)),$(call archive,sqlite3)) -lm -ldl -lpthread
found = $(if $(filter 1,$(2)),found,without) $(1)
FOUND = $(call found,jansson,$(HAVE_JANSSON)), $(call found,zstd,$(HAVE_ZSTD)), \
        $(call found,zlib,$(HAVE_ZLIB)), $(call found,sqlite3,$(HAVE_SQLITE3)), \
        $(call found,cmocka (unit tests),$(HAVE_CMOCKA)), \
        $(call found,Google Benchmark (make micro),$(HAVE_BENCHMARK)), \
        $(call found,gnuplot (figures),$(HAVE_GNUPLOT)), \
        $(if $(filter 1,$(HAVE_CUDA)),found cuda.h,without cuda.h (device cuda)), \
        $(if $(NVCC),found nvcc ($(NVCC)),without nvcc (kernels of device cuda))

DEFINES    := -D_GNU_SOURCE -DHAVE_JANSSON=$(HAVE_JANSSON) -DHAVE_ZSTD=$(HAVE_ZSTD) -DHAVE_ZLIB=$(HAVE_ZLIB) \
              -DHAVE_SQLITE3=$(HAVE_SQLITE3) -DHAVE_CUDA=$(HAVE_CUDA) -DHAVE_NVCC=$(HAVE_NVCC)
ALL_CFLAGS := -std=c11 $(DEFINES) $(WARN) $(CFLAGS_$(VARIANT)) $(CFLAGS) -I. $(CUDA_FLAGS)
CXX_FLAGS  := -std=c++17 -Wall -Wextra -Wshadow $(CFLAGS_$(VARIANT)) -I.

# ---- what there is to build ---------------------------------------------------------------------

LIB_SRC   := $(shell find allocators workloads sim bench -name '*.c' -not -path 'bench/cli/*' \
               -not -path 'bench/micro/*' -not -path 'bench/plugin/*' -not -path 'workloads/record/injection/*' -not -path '*/skeleton/*' -not -path '*/examples/*' | sort)
# Without cuda.h only the name of the device is there.
ifneq ($(HAVE_CUDA),1)
LIB_SRC   := $(filter-out $(filter-out bench/cuda/kind.c,$(wildcard bench/cuda/*.c)),$(LIB_SRC))
endif
CLI_SRC   := $(wildcard bench/cli/*.c)
MICRO_SRC := $(filter-out bench/micro/instructions.c bench/micro/harness.c,$(wildcard bench/micro/*.c)) $(wildcard bench/micro/*.cc)
SUP_SRC   := $(wildcard tests/support/*.c)
TEST_SRC  := $(wildcard tests/unit/test_*.c tests/property/test_*.c tests/golden/test_*.c)
GPU_SRC   := $(wildcard tests/gpu/test_*.c)
CELLS_SRC := $(wildcard tests/gpu/cells*.c)
FUZZ_SRC  := $(wildcard tests/fuzz/fuzz_*.c)

obj       = $(addprefix $(B)/,$(addsuffix .o,$(basename $(1))))
LIB       := $(B)/liballocrig.a
TESTS     := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
GPU_TESTS := $(if $(filter 1,$(HAVE_CUDA)),$(patsubst tests/%.c,$(B)/tests/%,$(GPU_SRC)) $(B)/tests/gpu/cells)
FUZZERS   := $(patsubst tests/%.c,$(B)/tests/%,$(FUZZ_SRC))
RECORDER     := $(if $(filter 1,$(HAVE_CUPTI)),$(B)/liballocrig_record.so)
RECORDER_SRC := $(wildcard workloads/record/injection/*.c)
STAND_IN_SRC := $(wildcard tests/support/cuda_stand_in/*.c)
STAND_IN  := $(if $(filter 1,$(HAVE_CUDA)),$(addprefix $(B)/tests/cuda_stand_in/,libcuda.so.1 libcublas.so.13)) \
             $(if $(filter 1,$(HAVE_CUPTI)),$(B)/tests/cuda_stand_in/libcupti.so.13 $(B)/tests/record_program)
CUPTI_FLAGS  := $(if $(CUPTI_INCLUDE),-isystem $(patsubst %/,%,$(dir $(CUPTI_INCLUDE))))
ON_HOST   := $(if $(filter 1,$(HAVE_NVCC)),$(GPU_TESTS) $(B)/tests/kernels_on_host/libcuda.so.1)

# Recursive calls come after `deps`, so that what it installed is seen. -j unless the user gave one.
SUB = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))

## all: build the program and leave the link ./allocrig (CC=gcc or clang; V=1 shows commands;
##     VARIANT=release, debug, san, tsan, each in a folder of its own)
all: $(B)/allocrig $(RECORDER)
	@ln -sfn $(B)/allocrig allocrig

program: $(B)/allocrig $(RECORDER)

$(B)/flags: FORCE
	@mkdir -p $(B); text='$(CC) $(shell $(CC) -dumpfullversion -dumpversion 2>/dev/null) $(ALL_CFLAGS) $(LIBS)'; \
	if [ "$$text" != "$$(cat $@ 2>/dev/null)" ]; then \
	    echo '$(VARIANT) build with $(CC): $(strip $(FOUND))' | fold -sw 80; \
	    [ '$(HAVE_JANSSON)$(HAVE_ZSTD)$(HAVE_ZLIB)$(HAVE_SQLITE3)' = 1111 ] || \
	        echo 'jansson, zstd, zlib and sqlite3 are needed for files of those kinds: "make deps" installs them' | fold -sw 80; \
	    printf '%s\n' "$$text" > $@; fi

$(B)/build_info.c: FORCE
	@mkdir -p $(B); commit=$$(git rev-parse HEAD 2>/dev/null || echo unknown); \
	dirty=$$([ -z "$$(git status --porcelain --untracked-files=no -- . ':!results/history.jsonl' 2>/dev/null)" ] && echo false || echo true); \
	printf '%s\n' '#include "bench/machine/build_info.h"' \
	    'const struct build_info *build_info(void)' '{' \
	    '    static const struct build_info info = {' \
	    "        \"$(VERSION)\", \"$$commit\", $$dirty, \"$(VARIANT)\"," \
	    "        \"$$($(CC) --version | head -n 1)\"," \
	    '        "$(ALL_CFLAGS)"};' \
	    '    return &info;' '}' > $@.new; \
	cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The profiles of sim/profiles as a table in C, one string for each line of a file.
$(B)/builtin_profiles.c: $(sort $(wildcard sim/profiles/*.profile)) Makefile
	@mkdir -p $(B); awk 'BEGIN { print "#include <stddef.h>\n#include \"sim/profiles/builtin.h\"" } \
	    FNR == 1 { if (count) print "    NULL,\n};"; \
	        name[++count] = FILENAME; gsub(/.*\/|\.profile$$/, "", name[count]); \
	        printf "static const char *const profile_%d[] = {\n", count } \
	    { gsub(/[\\"]/, "\\\\&"); printf "    \"%s\",\n", $$0 } \
	    END { print "    NULL,\n};\nconst struct sim_builtin_profile sim_builtin_profiles[] = {"; \
	        for (i = 1; i <= count; i++) printf "    {\"%s\", profile_%d},\n", name[i], i; \
	        print "    {NULL, NULL},\n};" }' $(filter %.profile,$^) > $@

$(B)/build_info.o $(B)/builtin_profiles.o: $(B)/%.o: $(B)/%.c $(B)/flags
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(B)/%.o: %.cc $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXX_FLAGS) -MMD -MP -c $< -o $@

# What `record` puts into the recorded program: the driver and libcupti are found there. Of all that
# it is made of, only the name that the driver looks for is seen from outside. With a sanitizer it
# can be put only into programs built with it.
$(B)/liballocrig_record.so: $(RECORDER_SRC) $(wildcard workloads/record/injection/*.h) \
        workloads/record/spool.h $(B)/flags
	$(Q)$(CC) $(ALL_CFLAGS) $(CUPTI_FLAGS) \
	    -fPIC -fvisibility=hidden -shared -Wl,-soname,liballocrig_record.so -o $@ $(RECORDER_SRC) -ldl -lpthread

# The kernels of device cuda: machine code for the first architecture of each family that the
# toolkit knows (it runs on the family's later ones), and PTX, which the driver compiles for the
# others. One image for all variants: it depends on nothing but its sources.
# Policies inside PyTorch and CuPy: what the plug-in needs of all this once more, position-independent,
# and without the kernels. -Bsymbolic: what it calls is its own, whatever else is in the process.
PLUGIN     := $(if $(filter 1,$(HAVE_CUDA)),$(B)/liballocrig_torch.so)
PLUGIN_SRC := $(wildcard bench/plugin/*.c) $(filter-out allocators/skeleton/%,$(filter allocators/%,$(LIB_SRC))) \
              $(wildcard bench/cuda/*.c) bench/host/address_map.c bench/machine/nvml.c sim/device.c sim/kernel_shape.c sim/replay/latency.c \
              $(wildcard sim/device_memory/*.c)
PLUGIN_FLAGS = $(ALL_CFLAGS) -UHAVE_NVCC -DHAVE_NVCC=0 -fPIC -fno-semantic-interposition -fexceptions

$(B)/pic/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(PLUGIN_FLAGS) -MMD -MP -c $< -o $@

$(B)/liballocrig_torch.so: $(addprefix $(B)/pic/,$(PLUGIN_SRC:.c=.o))
	$(Q)$(CC) $(PLUGIN_FLAGS) -shared -Wl,-Bsymbolic $(if $(filter -fsanitize=%,$(PLUGIN_FLAGS)),,-Wl,-z,defs) \
	    -o $@ $^ -lm -ldl -lpthread

## plugin: policies inside PyTorch and CuPy: .build/<variant>/liballocrig_torch.so (needs cuda.h)
plugin: $(PLUGIN)
	@[ '$(HAVE_CUDA)' = 1 ] || echo 'skipped: the plug-in, since cuda.h is not found'

KERNELS_IMAGE := .build/kernels.fatbin
KERNELS_OBJ   := $(if $(filter 1,$(HAVE_NVCC)),$(B)/bench/cuda/kernels_image.o)
KERNELS_SRC   := $(addprefix bench/cuda/,kernels.cu kernels.cuh kernels_shared.h pattern.h)

$(KERNELS_IMAGE): $(KERNELS_SRC)
	@mkdir -p $(@D)
	$(Q)archs=$$($(NVCC) --list-gpu-arch | sed 's/compute_//' | sort -n | \
	    awk '$$1 >= 70 && int($$1 / 10) != family { print; family = int($$1 / 10) }'); \
	code=; for arch in $$archs; do code="$$code -gencode arch=compute_$$arch,code=sm_$$arch"; done; \
	ptx=$${archs%%[!0-9]*}; code="$$code -gencode arch=compute_$$ptx,code=compute_$$ptx"; \
	$(NVCC) -fatbin -std=c++17 -O3 -I. -Xfatbin -compress-all -Wno-deprecated-gpu-targets --threads 2 \
	    $$code -o $@ $< || { echo 'nvcc failed; "make NVCC=" builds without the kernels'; exit 1; }

$(B)/bench/cuda/kernels_image.o: bench/cuda/kernels_image.S $(KERNELS_IMAGE) $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) -DKERNELS_FATBIN='"$(KERNELS_IMAGE)"' -c $< -o $@

# The list of objects is a prerequisite too: a source that was removed must leave the archive.
$(B)/objects: FORCE
	@mkdir -p $(B); echo '$(LIB_SRC)' | cmp -s - $@ || echo '$(LIB_SRC)' > $@

$(LIB): $(call obj,$(LIB_SRC)) $(KERNELS_OBJ) $(B)/build_info.o $(B)/builtin_profiles.o $(B)/objects
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

# -rdynamic: policies in shared objects use the program's own base functions.
# --whole-archive: also those of them that the program itself does not call.
$(B)/allocrig: $(call obj,$(CLI_SRC)) $(LIB)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS_$(VARIANT)) -rdynamic -o $@ $(filter %.o,$^) -Wl,--whole-archive $(LIB) -Wl,--no-whole-archive $(LIBS)

## tests: build the test programs without running them
tests: $(if $(filter 1,$(HAVE_CMOCKA)),$(TESTS)) $(FUZZERS) $(STAND_IN) $(ON_HOST) $(PLUGIN)
	@[ '$(HAVE_CMOCKA)' = 1 ] || echo 'skipped: unit, property and golden tests, since cmocka is not installed ("make deps")'

# A stand-in for the CUDA driver, for the tests of its device where no card is. Beside it a cuBLAS
# without functions, which is passed over: the real one would look for a real driver.
$(B)/tests/cuda_stand_in/libcuda.so.1: $(STAND_IN_SRC) $(wildcard tests/support/cuda_stand_in/*.h) \
        bench/cuda/api.h bench/cuda/kernels_shared.h $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -DHAVE_CUPTI=$(HAVE_CUPTI) $(CUPTI_FLAGS) -fPIC -shared -Wl,-soname,libcuda.so.1 \
	    -o $@ $(STAND_IN_SRC) -ldl -lpthread

# And one for CUPTI above it, and a program that uses the driver, for the recorder.
$(B)/tests/cuda_stand_in/libcupti.so.13: tests/support/cupti_stand_in/cupti.c \
        tests/support/cuda_stand_in/stand_in.h $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(CUPTI_FLAGS) -fPIC -shared -Wl,-soname,libcupti.so.13 -o $@ $< -ldl -lpthread

$(B)/tests/record_program: tests/support/record_program/program.c $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< -ldl -lpthread

$(B)/tests/cuda_stand_in/libcublas.so.13:
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -fPIC -Wl,-soname,libcublas.so.13 -o $@ -x c /dev/null

# Another, which runs the kernels' own source on the host.
$(B)/tests/kernels_on_host/libcuda.so.1: tests/support/kernels_on_host/driver.cc $(KERNELS_SRC) $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXX_FLAGS) $(CUDA_FLAGS) -Wno-unknown-pragmas -fvisibility=hidden -fPIC -shared \
	    -Wl,-soname,libcuda.so.1 -o $@ $<

fuzzers: $(FUZZERS)

$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/replay.o $(LIB)
ifeq ($(VARIANT),fuzz)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -rdynamic -o $@ $< $(LIB) $(LIBS)
else
	$(Q)$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $^ $(LIBS)
endif

# What runs on a card: no cmocka, which a GPU box may lack.
gpu-tests: $(GPU_TESTS)

$(B)/tests/gpu/cells: $(call obj,$(CELLS_SRC)) $(LIB)
	$(Q)$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $^ $(LIBS)

$(B)/tests/gpu/%: $(B)/tests/gpu/%.o $(LIB)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

# tests/support/parts.c stands before cmocka.
$(B)/tests/%: $(B)/tests/%.o $(call obj,$(SUP_SRC)) $(LIB)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS_$(VARIANT)) -Wl,--wrap=_cmocka_run_group_tests -rdynamic -o $@ $(filter %.o,$^) $(LIB) -lcmocka $(LIBS)

# ---- tests --------------------------------------------------------------------------------------

## test: install what is missing, build, run the lints, the suite, the suite under ASan and UBSan
test:
	@.ci/deps test || true
	@+$(SUB) VARIANT=release all tests
	@+$(SUB) VARIANT=san program tests
	@tests/run.sh lint release san

## check: the quick part: lints, unit and golden tests of one build, nothing installed
check:
	@+$(SUB) all tests
	@tests/run.sh --quick lint $(VARIANT)

## lint: arrows, headers, formatting, cppcheck and the other checks of the text itself
lint:
	@tests/run.sh lint

## san: the whole suite under ASan and UBSan
san:
	@+$(SUB) VARIANT=san program tests
	@tests/run.sh san

## tsan: the tests that start threads, under the thread sanitizer
tsan:
	@+$(SUB) VARIANT=tsan program tests
	@tests/run.sh --match 'capacity|experiment|jobs|sweep|suite|thread' tsan

## test-gpu: what needs a card: the device and its kernels, equality with the simulated device,
##     every byte checked (without a card all of it is skipped, exit status 0)
test-gpu:
	@+$(SUB) all gpu-tests
	@tests/gpu/run.sh $(VARIANT) $(GPU)

## fuzz: run each fuzz target for FUZZ_SECONDS (20) with clang's fuzzer, from the committed corpus
fuzz:
	@+$(SUB) VARIANT=fuzz fuzzers
	@tests/fuzz/run.sh .build/fuzz $(FUZZ_SECONDS)

## format: lay all C and C++ files out as .clang-format says
format:
	@tests/lint/format.sh --fix

# ---- benchmarks ---------------------------------------------------------------------------------

## bench: install what is missing, build, run a suite, draw the figures: card.ini where a card is,
##     else default.ini on the simulated one (QUICK=1: a small simulated suite; SUITE=FILE); goes on where it was ended
bench:
	@.ci/deps bench || true
	@+$(SUB) all
	@rm -rf $(RESULTS)/data $(RESULTS)/figures; mkdir -p $(B); touch $(B)/bench-began
	@suite='$(SUITE)'; if [ -z "$$suite" ]; then \
	    why=$$(./allocrig list devices cuda | sed -n '2,/^$$/p' | tr -s ' \n' ' '); \
	    case $$why in \
	    Available*) suite=workloads/suites/card.ini; echo "bench: on the card: $${why#Available: }" | fold -sw 80 ;; \
	    *) suite=workloads/suites/default.ini; \
	        echo "bench: on the simulated device, since no card can be used: $${why#Not available: }" | fold -sw 80 ;; \
	    esac; fi; \
	journal=$(B)/bench-$$(cksum <./allocrig | cut -d ' ' -f 1)-$$(cksum <$$suite | cut -d ' ' -f 1).journal; \
	[ ! -e "$$journal" ] || echo "bench: goes on where it was ended ($$journal)"; \
	echo "./allocrig run $$suite --journal $$journal"; ./allocrig run $$suite --journal $$journal
	@+$(SUB) draw
	@echo "files written:"; find $(RESULTS) -type f -newer $(B)/bench-began | sort | sed 's/^/  /'

## draw: draw results/latest/figures/ (SVG, PNG, and PDF as wide as a paper's column) from
##     results/latest/data/, which plots/data.sh completes; make bench does it
draw:
	@if [ -x allocrig ] && [ -d $(RESULTS)/data ]; then plots/data.sh $(RESULTS)/data; fi
	@if [ '$(HAVE_GNUPLOT)' = 1 ]; then plots/render.sh $(RESULTS)/data $(RESULTS)/figures; \
	else echo 'skipped: figures, since gnuplot is not installed ("make deps")'; fi

## figures: redraw every committed figure (plots/figures, and the table of capacities in README.md) from
##     a run of the default suite on the simulated card
figures: all
	@if [ '$(HAVE_GNUPLOT)' = 1 ]; then plots/committed.sh; \
	else echo 'skipped: figures, since gnuplot is not installed ("make deps")'; fi

## paper: rebuild results and figures in results/paper from the files of plots/paper.manifest; fails
##     if one of them has changed
paper: all
	@plots/paper.sh

## whatif: predict each recorded setting of a program from its other recordings: results/what-if.md
whatif: all
	@bench/suite/whatif.sh

## claims: what people say about GPU memory, a row and a figure for each, into results/latest/claims; fails
##     where one does not come out as expected (DEVICE=cuda: on a card what can be)
claims: all
	@bench/suite/claims.sh $(RESULTS)/claims $(or $(DEVICE),sim); status=$$?; [ $$status -le 1 ] || exit $$status; \
	if [ '$(HAVE_GNUPLOT)' = 1 ]; then plots/claim_rows.sh $(RESULTS)/claims $(RESULTS)/claims/figures || exit 2; \
	else echo 'skipped: figures, since gnuplot is not installed ("make deps")'; fi; \
	echo 'the page: $(RESULTS)/claims/claims.md'; exit $$status

## phases: what each pool holds at the end of training, evaluation, offload, sleep and wake, its drift from cycle to
##     cycle, and over 10,000 steps of varying lengths: results/latest/phases.md
phases: all
	@mkdir -p $(RESULTS); bench/suite/phases.sh >$(RESULTS)/phases.md.new && mv $(RESULTS)/phases.md.new $(RESULTS)/phases.md && cat $(RESULTS)/phases.md

## micro: nanoseconds per operation of each policy (Google Benchmark): alone, through a lock, with
##     threads, and on a card where one is (MICRO_FLAGS=--benchmark_filter=... or --all)
micro:
ifeq ($(HAVE_BENCHMARK),1)
	@+$(SUB) all $(B)/bench/micro/micro
	@bench/micro/run.sh $(B) micro
else
	@echo 'skipped: micro, since Google Benchmark is not installed ("make deps")'
endif

## instructions: instructions per operation of each policy (callgrind), beside the bars it is held to
##     (QUICK=1: only what has a bar)
instructions:
	@+$(SUB) all $(B)/bench/micro/instructions
	@bench/micro/run.sh $(B) instructions

## regress: a fixed suite and counts of instructions against results/baselines: exact figures exactly; fails
##     where one is worse (BASE=COMMIT: that commit and this tree measured in turn, times too, PAIRS=9;
##     DEVICE=cuda; POLICIES='./mine.so ...'; BASELINE=FOLDER)
regress:
	@+$(SUB) all $(B)/bench/micro/instructions
	@bench/regress/regress.sh regress $(B); status=$$?; [ $$status -le 1 ] || exit $$status; \
	[ -z '$(BASE)' ] || { bench/regress/regress.sh times $(B) || status=$$?; }; exit $$status

## history: measure what `make regress` does, add it to results/history.jsonl under this commit, and draw where figures
##     changed; fails where one is worse of late (LAST=10 commits; TIMES=N: times too, N repetitions)
history:
	@+$(SUB) all $(B)/bench/micro/instructions
	@HAVE_GNUPLOT=$(HAVE_GNUPLOT) bench/regress/regress.sh history $(B)

## baseline: rewrite results/baselines from this tree
baseline:
	@+$(SUB) all $(B)/bench/micro/instructions
	@bench/regress/regress.sh baseline $(B)

## harness: what the rig adds to a step on a card, beside a hand-written loop of the same launches
##     (HARNESS_FLAGS="-p torch -d sim"; fails where it is not surely under 3 %)
harness:
	@+$(SUB) $(B)/bench/micro/harness
	@$(B)/bench/micro/harness $(HARNESS_FLAGS)

$(B)/bench/micro/micro: $(call obj,$(MICRO_SRC)) $(LIB)
	$(Q)$(CXX) $(CXX_FLAGS) -o $@ $^ -lbenchmark $(LIBS)

$(B)/bench/micro/harness: $(call obj,bench/micro/harness.c) $(LIB)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

# As the program itself: policies in shared objects are counted too.
$(B)/bench/micro/instructions: $(call obj,bench/micro/instructions.c bench/micro/rig.c) $(LIB)
	$(Q)$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $(filter %.o,$^) -Wl,--whole-archive $(LIB) -Wl,--no-whole-archive $(LIBS)

# ---- the rest -----------------------------------------------------------------------------------

## deps: install through apt what building, benchmarks and tests need and is not there
deps:
	@.ci/deps all

POLICY_HEADERS = allocators/policy.h allocators/backing.h allocators/options.h allocators/spec.h \
                 $(wildcard allocators/base/*.h)
## install: copy the program and the headers for writing policies to PREFIX (/usr/local), and the
##     plug-in where "make plugin" was asked for
install: program
	install -D -m 755 $(B)/allocrig $(DESTDIR)$(PREFIX)/bin/allocrig
	$(if $(RECORDER),install -D -m 755 $(RECORDER) $(DESTDIR)$(PREFIX)/lib/liballocrig_record.so)
	$(if $(wildcard $(PLUGIN)),install -D -m 755 $(PLUGIN) $(DESTDIR)$(PREFIX)/lib/liballocrig_torch.so)
	$(if $(wildcard $(PLUGIN)),install -D -m 644 bench/plugin/allocrig_torch.py $(DESTDIR)$(PREFIX)/lib/allocrig/allocrig_torch.py)
	@for h in $(POLICY_HEADERS); do \
	    install -D -m 644 $$h $(DESTDIR)$(PREFIX)/include/allocrig/$$h || exit 1; done
	@echo 'a policy in a shared object is built with: cc -shared -fPIC -I$(PREFIX)/include/allocrig mine.c -o mine.so'

## clean: remove what was built (results stay)
clean:
	rm -rf .build allocrig

## help: list the targets
help:
	@awk '/^## [a-z-]+: / { sub(/^## /, "\n  "); sub(/: /, " "); text = text $$0; next } /^##     / { text = text substr($$0, 3) } \
	    END { count = split(text, targets, "\n"); for (i = 2; i <= count; i++) { \
	        words = split(targets[i], word, " "); line = sprintf("  %-13s", word[1]); \
	        for (j = 2; j <= words; j++) { \
	            if (length(line) + 1 + length(word[j]) > 80) { print line; line = sprintf("%15s", "") } \
	            line = line " " word[j] } \
	        print line } }' Makefile

FORCE:
.PHONY: all program plugin tests fuzzers gpu-tests test test-gpu check lint san tsan fuzz format bench draw figures paper whatif claims phases micro instructions regress history baseline harness deps install clean help FORCE
.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
