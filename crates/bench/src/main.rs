//! The benchmarks behind `cargo xtask bench`. Each prints a table and, as its
//! last line, one JSON object with the figures.
//!
//! Both sides of a comparison are measured in the same run, on the same
//! databases with the same number of connections, fsync on.
//! `docs/performance.md` says what is counted and what is not.
#![expect(clippy::print_stdout, reason = "a command line tool talks to its user")]

mod apply;
mod broker;
mod crossplane;
mod database;
mod deletion;
mod enrol;
mod fleet;
mod freeze;
mod http;
mod lists;
mod machine;
mod memory;
mod next;
mod plane;
mod population;
mod raw;
mod ready;
mod report;
mod rollout;
mod substrate;
mod tenants;
mod topology;
mod transitions;

use std::env;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match words[..] {
        ["apply"] => runtime.block_on(apply::run(1_000)),
        ["apply", "--quick"] => runtime.block_on(apply::run(200)),
        ["broker"] => runtime.block_on(broker::run(broker::Size::FULL)),
        ["broker", "--quick"] => runtime.block_on(broker::run(broker::Size::QUICK)),
        ["crossplane"] => runtime.block_on(crossplane::run(crossplane::Size::FULL)),
        ["crossplane", "--quick"] => runtime.block_on(crossplane::run(crossplane::Size::QUICK)),
        ["deletion"] => runtime.block_on(deletion::run(10_000)),
        ["deletion", "--quick"] => runtime.block_on(deletion::run(1_000)),
        ["enrol"] => runtime.block_on(enrol::run(10_000)),
        ["enrol", "--quick"] => runtime.block_on(enrol::run(1_000)),
        ["enrol", nodes] => runtime.block_on(enrol::run(nodes.parse()?)),
        ["fleet"] => runtime.block_on(fleet::run(fleet::Size::FULL)),
        ["fleet", "--quick"] => runtime.block_on(fleet::run(fleet::Size::QUICK)),
        ["freeze"] => runtime.block_on(freeze::run(10_000)),
        ["freeze", "--quick"] => runtime.block_on(freeze::run(1_000)),
        ["lists"] => runtime.block_on(lists::run(100_000)),
        ["lists", "--quick"] => runtime.block_on(lists::run(10_000)),
        ["freeze", resources] => runtime.block_on(freeze::run(resources.parse()?)),
        ["tenants"] => runtime.block_on(tenants::run(tenants::Size::FULL)),
        // In a separate process, so that it can be killed.
        [tenants::WORKER, database] => runtime.block_on(tenants::run_worker(database)),
        ["tenants", "--quick"] => runtime.block_on(tenants::run(tenants::Size::QUICK)),
        ["topology"] => runtime.block_on(topology::run(topology::Size::FULL)),
        ["topology", "--quick"] => runtime.block_on(topology::run(topology::Size::QUICK)),
        ["transitions", database, batching, way, resources] => {
            let resources = resources.parse()?;
            runtime.block_on(broker::one_comparison(database, batching, way, resources))
        }
        // In a separate process, so that nothing else is in its memory.
        [crossplane::MEMORY, kubeconfig, installation, watched] => {
            runtime.block_on(crossplane::measure_memory(kubeconfig, installation, watched))
        }
        [memory::COMMAND, objects] => runtime.block_on(memory::measure(objects.parse()?)),
        _ => bail!(
            "usage: slipway-bench apply [--quick] | broker [--quick] | crossplane [--quick] | deletion [--quick] | \
             enrol [--quick | NODES] | fleet [--quick] | freeze [--quick | RESOURCES] | lists [--quick] | \
             tenants [--quick] | topology [--quick] | transitions (postgres|sqlite) (shipped|single) (standalone|node) RESOURCES"
        ),
    }
}
