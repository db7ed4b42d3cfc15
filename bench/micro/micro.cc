// The shim between micro.h and Google Benchmark; see there. The only C++ file of the project.
#include "bench/micro/micro.h"

#include <benchmark/benchmark.h>

struct micro_state {
    benchmark::State *state;
};

namespace
{

benchmark::State &state_of(micro_state *state)
{
    return *state->state;
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
            const auto counter = run.counters.find("ns_per_op");
            micro_report report = {};
            report.name = name.c_str();
            report.ns_per_op = counter == run.counters.end() ? 0 : counter->second.value;
            report.iterations = static_cast<uint64_t>(run.iterations);
            report.problem = run.error_occurred ? run.error_message.c_str() : nullptr;
            reporter_(argument_, &report);
        }
    }

  private:
    micro_reporter *reporter_;
    void *argument_;
};

} // namespace

extern "C" void micro_register(const char *name, micro_function *function, void *argument)
{
    benchmark::RegisterBenchmark(name, [function, argument](benchmark::State &state) {
        micro_state wrapped = {&state};
        function(&wrapped, argument);
    });
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
