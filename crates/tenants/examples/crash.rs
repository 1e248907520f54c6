//! A worker dies inside a step; another one finds the job when the lease is over, and goes on
//! where the first was. Run it with `cargo run -p slipway-tenants --example crash`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use slipway_tenants::{
    Executor, JobStore, MemoryStore, NewJob, Options, Outcome, StateStore as _, Step, Steps,
};

fn steps(name: &'static str, dies: bool) -> Steps {
    let step = move |step: Step| {
        move |_| async move {
            println!("{name} runs {step}");
            if dies && step == Step::Migrate {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    };
    Step::ALL.into_iter().fold(Steps::new(), |steps, one| steps.with(one, step(one)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::new();
    store.upsert(&NewJob::new("create-anna", "anna")).await?;
    let shared: Arc<dyn JobStore> = Arc::new(store.clone());
    let executor = |name, dies| {
        let options = Options { lease: Duration::from_millis(300), ..Options::default() };
        Executor::builder()
            .store(Arc::clone(&shared))
            .steps(steps(name, dies))
            .options(options)
            .build()
    };

    let first = executor("the first", true)?;
    let died = tokio::time::timeout(Duration::from_millis(100), first.run("create-anna")).await;
    println!("the first worker died: {}", died.is_err());

    let second = executor("the second", false)?;
    let mut outcome = second.run("create-anna").await?;
    while outcome == Outcome::Leased {
        tokio::time::sleep(Duration::from_millis(50)).await;
        outcome = second.run("create-anna").await?;
    }
    let job = store.get("create-anna").await?;
    println!("{outcome:?} after {} attempts and {} edges", job.attempts, job.history.len());
    if outcome == Outcome::Ready { Ok(()) } else { Err("the job is not ready".into()) }
}
