/* Texts of operations on a policy or a device, of runs and scenarios, and of what must hold:
 * tests/steps/FILE, of which each section "== NAME" is a case. `include NAME` stands for the
 * lines of a section; one whose name begins with "." is no case of its own. A line is an
 * operation or a comparison:
 *
 *     open vmm on sim:capacity=64MiB
 *     alloc a 60MiB
 *     kernel A 50ms
 *     free a
 *     alloc b 60MiB stream=B -> a          # at the address of a
 *     50ms <= now < 51ms
 *     alloc c 60MiB -> NO_MEMORY
 *
 * Lines that begin with "#", and what follows " # ", are comments. A policy is validated after
 * each operation; on a device without a sentence of misuse or a race, and with as many physical
 * bytes as the policy has reserved. When the section ends, or another rig is opened, no host or
 * device memory may be left.
 *
 * **Rig.** `open SPEC on MEMORY`: MEMORY is a simulated device (`sim:.. [without_copies]
 * [pages=N]`, which sim_test_open opens), `pinned sim:..` for its pinned memory, or `fake [cap=N]
 * [pages=N] [total=N] [adjacent=0] [next=N]` for a fake backing; `skip BYTES` moves its next
 * address. `device sim:..`: a device without a policy; `device cuda..`: one over the stand-in for
 * the driver, whose calls are counted in `driver.FUNCTION`, what it holds in `held.THING`;
 * `driver_fails FUNCTION` once.
 *
 * **Policy.** `alloc NAME BYTES [stream=N] [align=N] [pool=N] [may_fail] [upper] [captured]
 * [plain] [own] [last_resort] [no_split]`; `free NAME.. [stream=N]` (without a stream: that of
 * the request); `use NAME STREAM`; `trim [KEEP]`; `end_pool N`; `delete_pool N`; `progress`;
 * `reset_peaks`; `would_release BYTES`, `would_fit BYTES`; `setting TEXT`; `change TEXT` of the
 * settings in the middle; `plan BYTES FROM TO ..`; `problem TEXT`.
 *
 * **Device.** `kernel STREAM NS`, `advance NS`, `sync [STREAM]`, `record EVENT STREAM`, `wait
 * STREAM EVENT`, `used ADDRESS BYTES STREAM EVENT`, `handed_out ADDRESS BYTES STREAM EVENT
 * [order]`, `race TEXT`, `outside BYTES`, `segment_of ADDRESS`, `requested`, `mark NAME`,
 * `profile TEXT`, `costs_of TEXT`.
 *
 * **Backing.** `segment NAME BYTES`, `segment_free ADDRESS`, `reserve NAME BYTES`, `release
 * ADDRESS`, `create NAME BYTES`, `destroy HANDLE`, `map ADDRESS HANDLE`, `access ADDRESS BYTES`,
 * `unmap ADDRESS BYTES`, `copy TO FROM BYTES`, `copy_out FROM BYTES`, `copy_in TO BYTES`, `fence
 * NAME STREAM`, `done NAME`, `await NAME`, `order STREAM NAME`, `pool_open [threshold=N] [most=N]
 * [follow] [opportunistic] [internal]`, `pool_alloc NAME BYTES STREAM`, `pool_free ADDRESS
 * STREAM`, `pool_trim KEEP`, `misuse TEXT`. `-> at ADDRESS`: of what was made. Of a policy:
 * `refuse_reserve N`, `refuse_map N` (its next N calls), `another_takes` (what is free after a
 * copy; `copies` counts them, `copied_from` is the address of the last one on the device).
 *
 * **Runs.** `run POLICY on DEVICE [WORD..] of WORKLOAD`, where DEVICE is a spec or `fake
 * [cap=N]`, and WORKLOAD a spec, a path, `events a,0,8 f,0 ..`, or `events` alone: those that
 * lines `event a,0,8 ..` added (`no_events` begins anew). Words: stop (at the first failure),
 * at-once, recorded (frees), timed (recorded host time), open (loop), clocked, verify, unit=N,
 * pinned=SPEC. Then metrics stand under their names, null ones as `max`, ratios as
 * `millionths.NAME`; and `passed`, `steps`, `failed_event`, `failed_bytes`, `rows`,
 * `row.N.FIELD`, `samples`, `sample.N.FIELD`. `cause NAME`.
 *
 * **Searches.** `find_capacity POLICY on DEVICE of WORKLOAD`: `capacity.FIELD`, `gap.N.FIELD`.
 * `explain ..`, or `explain_failure ..` without what would help: `explain.FIELD`, `index.NAME` in
 * millionths, `pin.N.FIELD` of pinning blocks, `tag TEXT`, `pinning_tag TEXT`, `helps SPEC`.
 *
 * **Generators.** `pull WORKLOAD` reads it to its end and sums it up (gen_rig.h): `gen.events`,
 * `gen.live`, .., and of a step `gen.N.live` (at its end), `gen.N.peak`, `gen.N.outside`,
 * `gen.N.bin.LOG2`. `read_trace PATH`: `trace.allocs`, `trace.streams`, ..
 *
 * **`learned`.** `learn`: a model of the events of lines `event`; `order TEXT`, `fate BLOCK
 * TEXT`, `period`, `warmup`, `step_count`, `marked`, `leaked` (bytes a step), `step.N.tail`.
 * `draw COUNT SEED`: a long run of so many steps; `step.N.FIELD` of live bytes at its end, the
 * first and second request, the largest; `misfits`.
 *
 * **Plug-in.** `plugin [NAME=VALUE..] [-> STATUS]` .. `end`: these lines run in a process with
 * the plug-in, its settings, and the stand-in for the driver. There `alloc NAME BYTES [card=N]
 * [stream=S] [cupy] [-> ADDRESS]` (0: refused), `free ADDRESS [card=N] [stream=S]`, `use ADDRESS
 * [STREAM]`, `trim`, `reset_peaks`, `mark TEXT`, `segment_of ADDRESS`, `fraction PERCENT`; `busy
 * STREAM [UNTIL]`, `captured STREAM`, `no_capture STREAM`; `begin_pool`, `end_pool`,
 * `release_pool`; `kill`, `fork` .. `end` in a child; `figure.NAME` and of the second card
 * `second.NAME`, `tail.STREAM`, `contexts`, `driver.FUNCTION`. After it, of what it said: `says
 * TEXT`, `says_once TEXT`; `recorded PATH TEXT`: the lines of a recording without times, in one.
 *
 * **Scenarios.** `twin PATH [kept=N] [seed=N] [start=SCHEDULE]` runs a scenario (`kept` cycles; a
 * schedule instead of the file's `start`). What the owners have must add up to what is used.
 * Without PATH it is the scenario of before; `scenario PATH` only reads it, `edit
 * SECTION.KEY=VALUE` changes it. `at PHASE [card N] [rank N]` is where the figures are from, at
 * first the end of the first phase: used_bytes, peak_bytes of the card; of the rank live_bytes,
 * reserved_bytes, .. (twin.h); `bytes(OWNER)`, `kind_of(OWNER)`, `pins`, `pin.N.FIELD`,
 * `pinned_by(OWNER)`. Of the run: twin.FIELD, failed.FIELD, `figure(NAME)` and `figure(NAME,
 * PHASE)` that parts report, `has(NAME)`, `phase(CYCLE, PLACE)`, `drift(PLACE, WARM)`. Texts:
 * `outcome`, `why`, `failed_owner`, `failed_action`, `failed_cause`, `phase_text`, `pin_text N
 * owner|tag|born`.
 *
 * `study [PATH] [plain]` also tries changes: `offers(TEXT)`, `saved(TEXT)`, `change_text N`,
 * study.N.FIELD of reported figures, `reported_text N`, cache.FIELD, `cache_option`, `cache_why`,
 * `tolerance PART`, `printed TEXT` of its page.
 *
 * **Rules of sizes.** `given FIELD=VALUE ..` fills in what they depend on, `and ..` more of it,
 * and each is a figure: steps_rules.def has both. `check_model`, `check_cache`, `vllm_version
 * TEXT`, `sglang_version TEXT`; `graphs_of MODE COUNT FIRST SECOND`; `batch_sizes TEXT`,
 * `batch_sizes vllm RELEASE SEQS TOKENS LARGEST`, `batch_sizes sglang RELEASE BATCH`, with
 * `sizes` and `size.N`. `communicator a|b RANKS RANK`, with `nccl_start(a)`, `nccl_use(a
 * all_reduce 4MiB)`, .. as figures. `scheduler FIELD=VALUE ..`, `request PROMPT ANSWER`, `step`,
 * `no_step`, with step.FIELD and paged.FIELD.
 *
 * **Several runs.** `tenants PATH`: a suite of processes, run twice with the same figures:
 * `tenant N outcome|cause|why TEXT`, tenant.N.FIELD. `advise [capacity=N] [limit=N]
 * [recorder=NAME-VERSION] [cut] [recorded] of RECORDING`, or of events: advice.FIELD, `best
 * [SPEC]`, `holder_tag N TEXT`, `first_row_lacks TEXT`, and of a row `fits(SPEC)`,
 * `safe_bytes(SPEC)`, `rank(SPEC)`, `peak(SPEC)`, ..; `predict POLICY of RECORDING`: `predicted`.
 * `compare_calls [repeated] SIMULATED CARD..`, files of --calls: model.FIELD, model.KIND.FIELD,
 * call.N.FIELD. `notes of events ..` of the tracer: notes.FIELD, notes.N.FIELD, `note
 * N|versions|refusal|measured|recorder TEXT`; `holders of events ..`: holders.N.FIELD, `holder N
 * tag|at TEXT`; `smallest_card BYTES [NAME]`. `survey of events ..`: survey.FIELD; `lifetimes
 * [recorded] of events ..`: life.N.FIELD. `request_stream`: 2000 requests of the policy that is
 * open, always the same ones; stream.hash of all addresses, stream.peak_granted.
 *
 * **Traces.** `filter PATH [steps=A-B] [stream=N] [device=N] [least=BYTES] [kinds=LETTERS]
 * [repeat=N] [at_once]`, `merge PATH PATH`; then `leaves PATH`: the text of what is left;
 * left.FIELD, `left_card TEXT`.
 *
 * **Kernel ops.** `shape OP -> NUMBER..`, `limits OP -> NAME SIZE ..`, `kernel_ns OP -> NS` of
 * the device, with OP = KIND TYPE M N K out OPERAND [in OPERAND..]; an operand is BYTES or
 * BYTES@ASKEW. `baseline DEVICE of TRACE`: `baseline_ns`.
 *
 * **Results.** An operation must return OK. `-> STATUS [TEXT]` expects another status, whose
 * sentence holds TEXT. `-> VALUE` is the number that it answers; of an alloc the address, and `->
 * ADDRESS GRANTED` the granted bytes too. `fails TEXT: LINE`: the line fails the test, with a
 * sentence that holds TEXT.
 *
 * **Values.** Numbers with KiB, MiB, GiB, us, ms, s; names of blocks (their address;
 * `a.granted`), of what was set (`set NAME VALUE`), of streams (A to D are 0 to 3; `all`), and
 * the figures in steps.c; + - * / % and parentheses; "//" divides to a whole number. A comparison
 * may have several parts: `1 <= now < 2`; `X ~ Y within Z` is of figures that were rounded.
 *
 * **Files.** `file NAME` and lines that begin with "|": $NAME is the path of a file of these
 * lines. After "|=" each blank ends a line. `text NAME REST`: $NAME is the rest of the line.
 * `file_says PATH TEXT`.
 *
 * **Blocks.** `for NAME FROM BELOW [STEP]` .. `end`; `each NAME..`, rows of words, `do` .. `end`;
 * `if COMPARISON` .. `end`; `long` .. `end`, which a sanitizer's build leaves to `make soak`.
 * `$NAME` in a line stands for the value. */
#pragma once

/* Runs each section of a file of tests/steps as a case: any difference fails it. NULL: of all files
 * but `plugin`, whose cases need a process that has not loaded the stand-in. Returns the status for
 * main. */
int steps_main(const char *file);
