// The shim between micro.h and Google Benchmark; see there. The only C++ file of the project.
#include "bench/micro/micro.h"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

struct micro_state {
    benchmark::State *state;
};

namespace
{

benchmark::State &state_of(micro_state *state)
{
    return *state->state;
}

// The sentence of a repetition that ended with one, or null. Version 1.8 renamed the members; the
// int prefers the first.
template <typename Run>
auto problem_of(const Run &run, int) -> decltype(run.error_occurred, run.error_message.c_str())
{
    return run.error_occurred ? run.error_message.c_str() : nullptr;
}

template <typename Run>
auto problem_of(const Run &run, long) -> decltype(run.skipped, run.skip_message.c_str())
{
    return static_cast<int>(run.skipped) != 0 ? run.skip_message.c_str() : nullptr;
}

class Reporter : public benchmark::BenchmarkReporter
{
  public:
    Reporter(micro_reporter *reporter, void *argument) : reporter_(reporter), argument_(argument)
    {
    }

    bool ReportContext(const Context &) override
    {
        return true;
    }

    void ReportRuns(const std::vector<Run> &runs) override
    {
        for (const Run &run : runs) {
            if (run.run_type != Run::RT_Iteration)
                continue;
            const std::string name = run.run_name.function_name;
            std::vector<micro_value> values;
            for (const auto &counter : run.counters)
                values.push_back({counter.first.c_str(), counter.second.value});
            micro_report report = {};
            report.name = name.c_str();
            report.values = values.data();
            report.value_count = values.size();
            report.iterations = static_cast<uint64_t>(run.iterations);
            report.problem = problem_of(run, 0);
            reporter_(argument_, &report);
        }
    }

  private:
    micro_reporter *reporter_;
    void *argument_;
};

} // namespace

namespace
{

auto *add(const char *name, micro_function *function, void *argument)
{
    return benchmark::RegisterBenchmark(name, [function, argument](benchmark::State &state) {
        micro_state wrapped = {&state};
        function(&wrapped, argument);
    });
}

} // namespace

extern "C" void micro_register(const char *name, micro_function *function, void *argument)
{
    add(name, function, argument);
}

extern "C" void micro_register_timed(const char *name, micro_function *function, void *argument)
{
    add(name, function, argument)->UseManualTime()->Iterations(1);
}

extern "C" void micro_time(micro_state *state, double nanoseconds)
{
    state_of(state).SetIterationTime(nanoseconds * 1e-9);
}

extern "C" bool micro_next(micro_state *state)
{
    return state_of(state).KeepRunning();
}

extern "C" void micro_operations(micro_state *state, uint64_t operations)
{
    // A rate turned upside down is seconds for each; a thousand-millionth part of the count makes
    // it nanoseconds.
    const double total =
        static_cast<double>(state_of(state).iterations()) * static_cast<double>(operations) * 1e-9;
    state_of(state).counters["ns_per_op"] =
        benchmark::Counter(total, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

extern "C" void micro_counter(micro_state *state, const char *name, double value)
{
    state_of(state).counters[name] = value;
}

extern "C" void micro_fail(micro_state *state, const char *sentence)
{
    state_of(state).SkipWithError(sentence);
}

extern "C" void micro_context(const char *key, const char *value)
{
    benchmark::AddCustomContext(key, value);
}

extern "C" int micro_run(int argc, char **argv, micro_reporter *reporter, void *argument)
{
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    Reporter display(reporter, argument);
    benchmark::RunSpecifiedBenchmarks(&display);
    benchmark::Shutdown();
    return 0;
}
