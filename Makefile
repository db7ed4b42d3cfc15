# allocrig. `make help` lists the targets. One file, not recursive over folders: sources are found
# by name, so a new one needs no line here. Build outputs go to .build/<variant>/, one folder per
# set of flags; a change of compiler or flags rebuilds that folder.

VERSION := 0.1.0
VARIANT ?= release
PREFIX  ?= /usr/local
SUITE   ?= $(if $(filter-out 0,$(QUICK)),workloads/suites/quick.ini)
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 20
PART    ?= suite operations fuzz kills faults policies memcheck
Q       := $(if $(filter-out 0,$(V)),,@)

# `CC ?= gcc` would keep make's built-in `cc`.
first = $(firstword $(foreach name,$(1),$(if $(shell command -v $(name) 2>/dev/null),$(name))) $(lastword $(1)))
CC    := $(if $(filter fuzz,$(VARIANT)),clang,$(if $(filter default,$(origin CC)),$(call first,gcc cc),$(CC)))
CXX   := $(if $(filter default,$(origin CXX)),$(call first,g++ c++),$(CXX))

# ---- variants -----------------------------------------------------------------------------------

CFLAGS_release := -O2 -fno-tree-vectorize -g1
CFLAGS_debug   := -O0 -g
# Undefined behaviour traps without a message: a program starts in half of the time. With
# CFLAGS='-fno-sanitize-undefined-trap-on-error -fno-sanitize-recover=all' it says what was wrong.
CFLAGS_san     := -Og -g1 -fsanitize=address,undefined -fsanitize-undefined-trap-on-error -fno-omit-frame-pointer
# Without relocations a program of this size starts in two thirds of the time; tests start thousands.
LDFLAGS_san    := -no-pie
CFLAGS_tsan    := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
CFLAGS_fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
VARIANTS       := release debug san tsan fuzz
ifeq ($(filter $(VARIANT),$(VARIANTS)),)
$(error unknown VARIANT "$(VARIANT)": choose one of $(VARIANTS))
endif

B    := .build/$(VARIANT)
# The release build says them, and the lint of warnings; without them the build with sanitizers takes a twentieth less.
WARN := $(if $(filter san,$(VARIANT)),-w,-Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# One set of objects for the program, both libraries and the plug-in. -fexceptions: exceptions of C++
# pass through them. Only names with AR_API (allocators/base/api.h) are visible from outside.
PIC  := -fPIC -fno-semantic-interposition -fexceptions -fvisibility=hidden

# ---- what is there ------------------------------------------------------------------------------

HEADERS := $(shell for name in jansson zstd zlib sqlite3 cmocka cuda; do \
               printf '\043if __has_include(<%s.h>)\n%s.h\n\043endif\n' $$name $$name; done | $(CC) -E -P -x c - 2>/dev/null)
header  = $(if $(filter $(1),$(HEADERS)),1,0)
program = $(if $(shell command -v $(1) 2>/dev/null),1,0)
yes     = $(filter 1,$(1))

# Libraries without which nothing is built: the name of each is that of its header. They are linked
# statically where the archive is there, so that a built tree can be carried to a machine that lacks them.
REQUIRED := jansson zstd zlib sqlite3
MISSING  := $(strip $(foreach library,$(REQUIRED),$(if $(call yes,$(call header,$(library).h)),,$(library))))
package   = $(if $(filter zlib,$(1)),zlib1g-dev,lib$(1)-dev)
REFUSAL   = cannot build without these libraries and their headers: $(MISSING): run "make deps", or install $(foreach \
                l,$(MISSING),$(call package,$(l)))
archive   = $(if $(findstring /,$(shell $(CC) -print-file-name=lib$(1).a)),-l:lib$(1).a,-l$(1))
LINKED   := $(REQUIRED:zlib=z)
LIBS     := $(foreach library,$(LINKED),$(call archive,$(library))) -lm -ldl -lpthread
SO_LIBS  := $(LINKED:%=-l%) -lm -ldl -lpthread

HAVE_CMOCKA    := $(call header,cmocka.h)
HAVE_BENCHMARK := $(if $(wildcard /usr/include/benchmark/benchmark.h /usr/local/include/benchmark/benchmark.h),1,0)
CUDA_INCLUDE   := $(firstword $(wildcard $(addsuffix /cuda.h,$(CUDA_HOME:%=%/include) /usr/local/cuda/include)))
CUDA_FLAGS     := $(CUDA_INCLUDE:%/cuda.h=-isystem %)
HAVE_CUDA      := $(if $(CUDA_INCLUDE),1,$(call header,cuda.h))
NVCC           := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
HAVE_NVCC      := $(if $(NVCC),$(HAVE_CUDA),0)
CUPTI_INCLUDE  := $(firstword $(wildcard $(addsuffix /cupti.h,$(CUDA_HOME:%=%/include) $(CUDA_HOME:%=%/extras/CUPTI/include) \
                    $(addprefix /usr/local/cuda/,include targets/x86_64-linux/include targets/sbsa-linux/include extras/CUPTI/include))))
HAVE_CUPTI     := $(if $(CUPTI_INCLUDE),$(HAVE_CUDA),0)
CUPTI_FLAGS    := -DHAVE_CUPTI=$(HAVE_CUPTI) $(CUPTI_INCLUDE:%/cupti.h=-isystem %)

found = $(if $(call yes,$(2)),found,without) $(1)
FOUND = $(call found,cmocka (unit tests),$(HAVE_CMOCKA)), $(call found,Google Benchmark (micro),$(HAVE_BENCHMARK)), \
        $(call found,gnuplot (figures),$(call program,gnuplot)), $(call found,cuda.h (device cuda),$(HAVE_CUDA)), \
        $(call found,$(or $(NVCC),nvcc) (kernels of device cuda),$(HAVE_NVCC))

ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -DHAVE_CUDA=$(HAVE_CUDA) -DHAVE_NVCC=$(HAVE_NVCC) \
              $(WARN) $(PIC) $(CFLAGS_$(VARIANT)) $(CFLAGS) -I. $(CUDA_FLAGS)
CXX_FLAGS  := -std=c++17 -Wall -Wextra -Wshadow $(CFLAGS_$(VARIANT)) -I.

# ---- what there is to build ---------------------------------------------------------------------

obj       = $(addprefix $(B)/,$(addsuffix .o,$(basename $(1))))
# Without cuda.h only the name of device cuda is there.
LIB_SRC   := $(shell find allocators workloads sim bench -name '*.c' -not -path 'bench/cli/*' -not -path 'bench/micro/*' \
               -not -path 'bench/plugin/*' -not -path 'workloads/record/injection/*' -not -path '*/skeleton/*' \
               -not -path '*/examples/*' | sort)
LIB_SRC   := $(filter-out $(if $(call yes,$(HAVE_CUDA)),,$(filter-out %/kind.c,$(wildcard bench/cuda/*.c))),$(LIB_SRC))
GENERATED := $(B)/build_info.o $(B)/builtin_profiles.o
LIB_OBJ   := $(call obj,$(LIB_SRC)) $(GENERATED) $(if $(call yes,$(HAVE_CUDA)),$(B)/bench/cuda/kernels_image.o)
LIB       := $(B)/liballocrig.a
LIB_SO    := $(B)/liballocrig.so.$(VERSION)
PLUGIN    := $(if $(call yes,$(HAVE_CUDA)),$(B)/liballocrig_torch.so)
RECORDER  := $(if $(call yes,$(HAVE_CUPTI)),$(B)/liballocrig_record.so)

built     = $(patsubst tests/%.c,$(B)/tests/%,$(wildcard $(1)))
TESTS     := $(call built,tests/unit/test_*.c tests/property/test_*.c tests/golden/test_*.c)
GPU_TESTS := $(if $(call yes,$(HAVE_CUDA)),$(call built,tests/gpu/test_*.c) $(B)/tests/gpu/cells)
FUZZERS   := $(call built,tests/fuzz/fuzz_*.c)
STAND_IN  := $(if $(call yes,$(HAVE_CUDA)),$(addprefix $(B)/tests/cuda_stand_in/,libcuda.so.1 libcublas.so.13)) \
             $(if $(call yes,$(HAVE_CUPTI)),$(B)/tests/cuda_stand_in/libcupti.so.13 $(B)/tests/record_program)
# The host runs kernels in contexts, which sanitizers do not follow: tests/cli/test_kernels.sh runs in release only.
ON_HOST   := $(if $(call yes,$(HAVE_NVCC)),$(if $(filter san,$(VARIANT)),$(filter %/cells,$(GPU_TESTS)), \
                 $(GPU_TESTS) $(B)/tests/kernels_on_host/libcuda.so.1))

# Recursive calls come after `deps`, so that what it installed is seen. -j unless the user gave one.
SUB = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))

## all: build the program and the link ./allocrig (CC=gcc or clang; V=1 shows commands; VARIANT=release, debug, san, tsan)
all: program
	@ln -sfn $(B)/allocrig allocrig
program: $(B)/allocrig $(LIB_SO) $(RECORDER)
## library: the library, static and shared: .build/<variant>/liballocrig.a and liballocrig.so
library: $(LIB) $(LIB_SO)
## plugin: policies inside PyTorch and CuPy: .build/<variant>/liballocrig_torch.so (needs cuda.h)
plugin: $(PLUGIN)
	@$(if $(PLUGIN),,echo 'skipped: the plug-in, since cuda.h is not found')
## tests: build the test programs
tests: $(if $(call yes,$(HAVE_CMOCKA)),$(TESTS)) $(FUZZERS) $(STAND_IN) $(ON_HOST) $(PLUGIN)
	@$(if $(call yes,$(HAVE_CMOCKA)),,echo 'skipped: unit, property and golden tests, since cmocka is not installed ("make deps")')

# gpu-tests: what runs on a card, without cmocka, which a GPU box may lack.
gpu-tests: $(GPU_TESTS)
fuzzers: $(FUZZERS)
# measured: what tests of it would else build, one of them for a long time while others wait for the lock.
measured: $(addprefix $(B)/bench/micro/,harness instructions $(if $(call yes,$(HAVE_BENCHMARK)),micro))

# ---- objects ------------------------------------------------------------------------------------

# All that is built depends on this file: what it was built with.
$(B)/flags: FORCE
	@$(if $(MISSING),echo '$(REFUSAL)' >&2; exit 1)
	@mkdir -p $(B); text='$(CC) $(shell $(CC) -dumpfullversion -dumpversion 2>/dev/null) $(ALL_CFLAGS) $(LIBS)'; \
	if [ "$$text" != "$$(cat $@ 2>/dev/null)" ]; then \
	    echo '$(VARIANT) build with $(CC): $(strip $(FOUND))' | fold -sw 80; printf '%s\n' "$$text" > $@; fi

$(B)/build_info.c: bench/machine/build_info.sh $(B)/flags FORCE
	@$< $@ '$(VERSION)' '$(VARIANT)' '$(CC)' '$(ALL_CFLAGS)'
$(B)/builtin_profiles.c: sim/profiles/builtin.sh $(sort $(wildcard sim/profiles/*.profile)) $(B)/flags
	@$< $(filter %.profile,$^) > $@
$(GENERATED): $(B)/%.o: $(B)/%.c
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# Warnings are kept beside the object for the lint of warnings, which compiles what is not built.
KEEP_WARNINGS = $(if $(filter release,$(VARIANT)),2>$@.warnings; status=$$?; \
    [ ! -s $@.warnings ] || cat $@.warnings >&2; exit $$status)
$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SPEED) $(MAIN) -MMD -MP -c $< -o $@ $(KEEP_WARNINGS)
# The code of most tests runs for milliseconds: compiling it is what takes time.
$(B)/tests/unit/%.o $(B)/tests/golden/%.o: SPEED := -O0 -g1
$(B)/tests/unit/test_change_points.o: SPEED := -O2 -g1
$(B)/tests/fuzz/%.o $(B)/tests/support/%.o: SPEED := -Og -g1
# What reads options and prints pages compiles in half of the time, and a person or a file waits for it in any case.
$(addprefix .build/release/bench/,cli/%.o library/%.o regress/%.o report/%.o suite/%.o): SPEED := -Og -g1
# So it is, with sanitizers, for what reads options, prints tables and plans what others compute.
.build/san/bench/%.o $(addprefix .build/san/sim/,twin/%.o explain/%.o advise/%.o drift/%.o search/%.o experiment/%.o): SPEED := -O0
# -Og compiles in three quarters of the time of -O1 and runs 7 % longer: -O1 is for where tests spend most of theirs.
$(addprefix .build/san/,$(addsuffix /%.o,bench/statistics bench/calibrate allocators/base allocators/planning \
    allocators/policies/torch sim/device_memory sim/replay sim/sim_device workloads/io workloads/trace) \
    bench/suite/child.o $(addprefix sim/,explain/message_text.o twin/parts/player.o twin/parts/purposes.o)): SPEED := -O1
$(TESTS:%=%.o): private MAIN = -Dmain=$(notdir $*)_main
$(TESTS:%=%.o): tests/support/programs.sh
$(B)/%.o: %.cc $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXX_FLAGS) -MMD -MP -c $< -o $@

# The kernels of device cuda, one image for all variants: it depends on nothing but its sources.
KERNELS_IMAGE := .build/kernels.fatbin
KERNELS_SRC   := $(addprefix bench/cuda/,kernels.cu kernels.cuh kernels_shared.h)
$(KERNELS_IMAGE): bench/cuda/kernels.sh $(KERNELS_SRC)
	@mkdir -p $(@D)
	$(Q)$< '$(NVCC)' $@

# Without nvcc, and in the plug-in, the image is empty.
$(B)/bench/cuda/kernels_image.o: $(if $(call yes,$(HAVE_NVCC)),$(KERNELS_IMAGE))
$(B)/bench/cuda/kernels_image.o $(B)/bench/cuda/kernels_none.o: bench/cuda/kernels_image.S $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(patsubst %,-DKERNELS_FATBIN='"%"',$(filter %.fatbin,$^)) -c bench/cuda/kernels_image.S -o $@

# ---- libraries ----------------------------------------------------------------------------------

# The list of objects is a prerequisite too: a source that was removed must leave the archive.
$(B)/objects: FORCE
	@mkdir -p $(B); echo '$(LIB_OBJ)' | cmp -s - $@ || echo '$(LIB_OBJ)' > $@
$(LIB): $(LIB_OBJ) $(B)/objects
	@rm -f $@.new
	$(Q)ar rcs $@.new $(filter %.o,$^)
	$(PUT)

# A policy that is not registered, or has the name of another, ends the build.
$(B)/policies: .ci/policies $(filter allocators/policies/%,$(LIB_SRC)) allocators/policies.def $(B)/objects
	@$< && touch $@
$(LIB) $(LIB_SO): $(B)/policies

# Sanitizers find their functions in the program, at run time.
NO_UNDEFINED := $(if $(findstring -fsanitize=,$(ALL_CFLAGS)),,-Wl,-z,defs)
SONAME       := liballocrig.so.$(firstword $(subst ., ,$(VERSION)))
$(LIB_SO): $(LIB_OBJ) $(B)/objects
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,-soname,$(SONAME) $(NO_UNDEFINED) -o $@.new $(filter %.o,$^) $(SO_LIBS)
	$(PUT)
	@ln -sfn $(@F) $(B)/$(SONAME); ln -sfn $(SONAME) $(B)/liballocrig.so

# Policies inside PyTorch and CuPy: all of allocators, and of the rest what is used. -Bsymbolic: it calls
# its own functions, whatever else is in the process.
$(B)/liballocrig_torch.so: $(call obj,$(wildcard bench/plugin/*.c) $(filter allocators/%,$(LIB_SRC)) \
        bench/cuda/kernels_none.S) $(LIB)
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,-Bsymbolic $(NO_UNDEFINED) -o $@ $^ -lm -ldl -lpthread

# What `record` puts into the recorded program, where the driver and libcupti are. Only the name that the
# driver looks for is visible. A build with a sanitizer fits only programs built with it.
$(B)/liballocrig_record.so: $(wildcard workloads/record/injection/*.[ch]) workloads/record/spool.h
$(B)/liballocrig_record.so: EXPORTS := -fvisibility=hidden

# A stand-in for the CUDA driver, for the tests of its device where no card is, and one for CUPTI above it.
$(B)/tests/cuda_stand_in/libcuda.so.1: $(wildcard tests/support/cuda_stand_in/*.[ch]) bench/cuda/api.h bench/cuda/kernels_shared.h
$(B)/tests/cuda_stand_in/libcupti.so.13: tests/support/cupti_stand_in/cupti.c tests/support/cuda_stand_in/stand_in.h
$(B)/tests/cuda_stand_in/libcuda.so.1 $(B)/tests/cuda_stand_in/libcupti.so.13: EXPORTS := -fvisibility=default
$(B)/liballocrig_record.so $(B)/tests/cuda_stand_in/libcuda.so.1 $(B)/tests/cuda_stand_in/libcupti.so.13: $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(CUPTI_FLAGS) $(EXPORTS) -shared -Wl,-soname,$(@F) -o $@.new $(filter %.c,$^) -ldl -lpthread
	$(PUT)

# A cuBLAS without functions, which is passed over: the real one would look for a real driver.
$(B)/tests/cuda_stand_in/libcublas.so.13:
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -fPIC -Wl,-soname,$(@F) -o $@ -x c /dev/null

# Another stand-in for the driver, which runs the kernels' own source on the host.
$(B)/tests/kernels_on_host/libcuda.so.1: tests/support/kernels_on_host/driver.cc $(KERNELS_SRC) $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXX_FLAGS) $(CUDA_FLAGS) -Wno-unknown-pragmas -fvisibility=hidden -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

# ---- programs -----------------------------------------------------------------------------------
# -rdynamic: policies in shared objects use the program's own base functions. --whole-archive: also
# those of them that the program itself does not call. The tests, a hundred programs, link faster by gold.
# What is linked appears whole under its name: a test that installs may link while another one runs the program.
LINK      = $(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS_$(VARIANT)) -rdynamic -o $@.new $(filter %.o,$^)
PUT       = @mv -f $@.new $@
LINK_TEST = $(LINK) $(if $(shell command -v ld.gold),-fuse-ld=gold) $(LIB)

$(B)/allocrig: $(call obj,$(wildcard bench/cli/*.c) $(if $(filter san,$(VARIANT)),tests/support/quick_asan.c))
$(B)/bench/micro/instructions: $(call obj,bench/micro/instructions.c bench/micro/rig.c)
$(B)/allocrig $(B)/bench/micro/instructions: $(LIB)
	$(LINK) -Wl,--whole-archive $(LIB) -Wl,--no-whole-archive $(LIBS)
	$(PUT)
$(B)/bench/micro/harness: $(B)/bench/micro/harness.o $(LIB)
	$(LINK) $(LIB) $(LIBS)
	$(PUT)
$(B)/bench/micro/micro: $(call obj,$(filter-out %/instructions.c %/harness.c,$(wildcard bench/micro/*.c)) \
        bench/micro/micro.cc) $(LIB)
	$(Q)$(CXX) $(CXX_FLAGS) -o $@.new $^ -lbenchmark $(LIBS)
	$(PUT)

# cmocka passes a state to every test, also to those without one. `private`: the file of flags, which the
# objects depend on, has the flags of all.
$(B)/tests/%.o: private ALL_CFLAGS += -Wno-unused-parameter
# All test programs are one file, which each of them is a link to: linking each takes longer than compiling it.
# tests/support/parts.c must come before cmocka; tests/support/scarce.c makes allocations fail.
WRAPPED  := _cmocka_run_group_tests malloc calloc realloc strdup
PROGRAMS := $(B)/tests/programs
$(PROGRAMS)/main.c: tests/support/programs.sh FORCE
	@mkdir -p $(@D); $< $(TESTS:$(B)/tests/%=%) > $@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(PROGRAMS)/main.o: $(PROGRAMS)/main.c $(B)/flags
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@
$(PROGRAMS)/all: $(PROGRAMS)/main.o $(TESTS:%=%.o) $(call obj,$(wildcard tests/support/*.c)) $(LIB)
	$(LINK_TEST) -no-pie $(WRAPPED:%=-Wl,--wrap=%) -lcmocka $(LIBS)
	$(PUT)
$(TESTS): $(PROGRAMS)/all
	@ln -sfn ../programs/all $@
$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(if $(filter fuzz,$(VARIANT)),,$(B)/tests/fuzz/replay.o) $(LIB)
	$(LINK_TEST) $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer) $(LIBS)
	$(PUT)
$(B)/tests/gpu/cells: $(call obj,$(wildcard tests/gpu/cells_*.c))
$(B)/tests/gpu/%: $(B)/tests/gpu/%.o $(LIB)
	$(LINK_TEST) $(LIBS)
	$(PUT)
$(B)/tests/record_program: $(B)/tests/support/record_program/program.o
	$(LINK) -ldl -lpthread
	$(PUT)

# ---- tests --------------------------------------------------------------------------------------

## test: install what is missing, build, run the lints, the suite, the suite under ASan and UBSan
test:
	@.ci/deps test || true
	@+$(SUB) VARIANT=release all tests measured
	@+$(SUB) VARIANT=san program tests
	@tests/run.sh lint release san
## test-policy: the tests that every policy passes, of one: make test-policy POLICY=best-fit, or POLICY=./mine.so
test-policy:
	@$(if $(POLICY),,echo 'name the policy: make test-policy POLICY=best-fit, or POLICY=./mine.so' >&2; exit 2)
	@[ -z '$(filter %.so,$(POLICY))' ] || [ ! '$(POLICY:.so=.c)' -nt '$(POLICY)' ] || \
	    { echo '$(POLICY:.so=.c) is newer than $(POLICY): build it again first' >&2; exit 2; }
	@+$(SUB) all tests
	@set -e; for test in property/test_conformance property/test_random property/test_verify golden/test_recompute; do \
	    POLICY='$(POLICY)' $(B)/tests/$$test; done; echo '$(POLICY) passes'
## soak: what runs for long, in parts that go on after an interruption: results/soak.md. PART='suite operations fuzz kills
##     faults policies memcheck' (all); OPERATIONS (10^8) of each policy, FUZZ_SECONDS (36000) of each reader, KILLS (1000);
##     SECONDS: begin nothing new after so many. suite: all tests with all random operations, plain and under ASan and UBSan
soak:
	@+$(SUB) VARIANT=release all tests $(if $(filter memcheck,$(PART)),gpu-tests)
	@+$(if $(filter suite,$(PART)),$(SUB) VARIANT=san program tests)
	@$(if $(filter suite,$(PART)),TEST_SOAK=1 tests/run.sh release san)
	@+$(if $(filter fuzz,$(PART)),$(SUB) VARIANT=fuzz fuzzers)
	@OPERATIONS='$(OPERATIONS)' KILLS='$(KILLS)' FUZZ_SECONDS='$(if $(filter file,$(origin FUZZ_SECONDS)),,$(FUZZ_SECONDS))' \
	    tests/soak/soak.py $(if $(SECONDS),--seconds $(SECONDS)) --jobs $(JOBS) $(or $(filter-out suite,$(PART)),page)
## check: the quick part, under a minute: lints and the tests of one build without those that take long; nothing installed
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
## mutants: change the product in one place at a time and see which tests notice: results/mutants.md (COUNT=N mutants;
##     CHANGED=REVISION: only files that differ from it, quick tests, under 10 minutes; SEED=N, ROOMS=FOLDER,..: others)
mutants:
	@python3 tests/mutants/mutants.py --jobs $(JOBS) $(COUNT:%=--count %) $(CHANGED:%=--changed % --seconds 540) \
	    $(SEED:%=--seed %) $(if $(ROOMS),--rooms '$(ROOMS)')
## test-gpu: what needs a card: the device and its kernels, equality with the simulated device, every byte checked (without
##     a card all of it is skipped, exit status 0)
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

# ---- results ------------------------------------------------------------------------------------

## bench: install what is missing, build, run a suite, draw the figures: card.ini if there is a card, else default.ini on
##     the simulated one (QUICK=1: a small simulated suite; SUITE=FILE); goes on where it was ended
bench:
	@.ci/deps bench || true
	@+$(SUB) all
	@bench/suite/bench.sh $(B) '$(SUITE)'
## draw: draw results/latest/figures/ (SVG, PNG, PDF as wide as a column) from results/latest/data/; make bench does it
draw:
	@plots/draw.sh
## figures: redraw plots/figures and the table of capacities in README.md from the default suite on the simulated card
figures: all
	@plots/committed.sh
## paper: rebuild results/paper from the files of plots/paper.manifest; fails if one of them has changed
paper: all
	@plots/paper.sh
## whatif: predict each recorded setting of a program from its other recordings: results/what-if.md
whatif: all
	@bench/suite/whatif.sh
## dataset: the data set of workloads with cards and sums, in results/dataset (TAG=v1.0: the seeds of the test split)
dataset: all
	@workloads/dataset/build.py --tag '$(or $(TAG),rehearsal)'
## search: search for a better policy on the train split of results/dataset (ARGS: options of bench/search/search.py)
search: all tests
	@bench/search/search.py run $(ARGS)
## leaderboard: check the submissions, make their rows on the test split, and the page: results/leaderboard
leaderboard: all
	@bench/leaderboard/make.sh
## rematch: published comparisons of allocators (STAlloc, GMLake, Mooncake's store) beside ours: results/rematch
rematch: all library
	@bench/rematch/rematch.py $(or $(OUT),results/rematch)
## claims: what people say about GPU memory, a row and a figure each, in results/latest/claims; fails if one does not come
##     out as expected (DEVICE=cuda: on a card what can be)
claims: all
	@bench/suite/claims.sh --figures results/latest/claims $(DEVICE)
## phases: what each pool holds after training, evaluation, offload, sleep and wake, and its drift from cycle to cycle and
##     over 10,000 steps of varying lengths: results/latest/phases.md
phases: all
	@bench/suite/phases.sh -o results/latest/phases.md
## micro: nanoseconds per operation of each policy (Google Benchmark): alone, through a lock, with
##     threads, and on a card where one is (MICRO_FLAGS=--benchmark_filter=... or --all)
micro:
	@+$(if $(call yes,$(HAVE_BENCHMARK)),$(SUB) all $(B)/bench/micro/micro)
	@$(if $(call yes,$(HAVE_BENCHMARK)),bench/micro/run.sh $(B) micro,echo \
	    'skipped: micro, since Google Benchmark is not installed ("make deps")')
## sizes: instructions per operation of each policy with up to 10^6 blocks, streams, pools and segments (callgrind):
##     results/cost_with_size.md, when all are done; fails if one grows by more than log n
sizes:
	@+$(SUB) $(B)/bench/micro/instructions
	@bench/micro/sizes.sh -o results/cost_with_size.md $(B)
## instructions: instructions per operation of each policy (callgrind), and their limits (QUICK=1: only those with a limit)
## regress: compare a fixed suite and counts of instructions with results/baselines; fails if a figure is worse (BASE=COMMIT:
##     that commit and this tree measured in turn, times too, PAIRS=9; DEVICE=cuda; POLICIES='./mine.so ...'; BASELINE=FOLDER)
## history: measure what `make regress` does, add it to results/history.jsonl under this commit, draw where figures changed;
##     fails if one is worse of late (LAST=10 commits; TIMES=N: times too, N repetitions)
## baseline: rewrite results/baselines from this tree
instructions regress history baseline:
	@+$(SUB) all $(B)/bench/micro/instructions
	@$(if $(filter instructions,$@),bench/micro/run.sh $(B) $@,bench/regress/regress.sh $@ $(B))
## harness: what the rig adds to a step on a card, compared with a hand-written loop of the same launches; fails if it is
##     not surely under 3 % (HARNESS_FLAGS="-p torch -d sim")
harness:
	@+$(SUB) $(B)/bench/micro/harness
	@$(B)/bench/micro/harness $(HARNESS_FLAGS)

# ---- the rest -----------------------------------------------------------------------------------

## deps: install through apt what building, benchmarks and tests need and is not there
deps:
	@.ci/deps all
## install: copy program, library, headers, manual pages, completions and, if it was built, the plug-in to PREFIX (/usr/local)
install: program library
	@LIBS='$(SO_LIBS)' bench/library/install.sh install $(B) '$(PREFIX)' $(VERSION)
## uninstall: remove what install copied to PREFIX
uninstall:
	@bench/library/install.sh uninstall $(B) '$(PREFIX)' $(VERSION)
## clean: remove what was built (results stay)
clean:
	rm -rf .build allocrig
## help: list the targets
help:
	@.ci/help

FORCE:
.PHONY: all program library plugin tests fuzzers gpu-tests measured test test-gpu soak check mutants lint san tsan fuzz format bench draw \
        test-policy figures paper whatif dataset search leaderboard rematch claims phases micro sizes instructions regress history baseline harness deps install uninstall clean help FORCE
.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
