//! Provisions five tenants, one of which has a seed that fails: four are ready, one is
//! cleaned up. A tenant is a folder here. Run it with
//! `cargo run -p slipway-tenants --example provision`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use slipway_tenants::{
    Cancel, ClaimFrom, Executor, JobStore, NewJob, SqliteStore, StateStore as _, StepContext,
    StepError, Steps,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::temp_dir().join(format!("tenants-example-{}", std::process::id()));
    fs::create_dir_all(&root)?;
    let store = SqliteStore::open(&root.join("jobs.db"), "").await?;
    store.create_table().await?;
    let store: Arc<dyn JobStore> = Arc::new(store);

    let executor = Executor::builder().store(Arc::clone(&store)).steps(steps(&root)).build()?;
    let names = ["anna", "berta", "carla", "dora", "emil"];
    let jobs: Vec<_> = names.map(|name| NewJob::new(format!("create-{name}"), name)).into();
    for job in store.upsert_many(&jobs).await {
        job?;
    }
    // Any number of processes may do this: each job is claimed by one of them.
    let claimed = executor.claim(ClaimFrom::Partition(""), 50).await?;
    for (id, outcome) in executor.work(claimed, &Cancel::new()).await {
        match outcome {
            Ok(outcome) => println!("{id}: {outcome:?}"),
            Err(error) => println!("{error}"),
        }
    }
    let left = names.iter().filter(|name| root.join(name).exists()).count();
    fs::remove_dir_all(&root)?;
    if left == 4 { Ok(()) } else { Err(format!("{left} tenants exist, not 4").into()) }
}

fn steps(root: &std::path::Path) -> Steps {
    let folder = {
        let root = root.to_owned();
        move |context: &StepContext| -> PathBuf { root.join(&context.job().tenant_id) }
    };
    let (makes, seeds, removes) = (folder.clone(), folder.clone(), folder);
    Steps::new()
        .create_schema(move |context| {
            let folder = makes(&context);
            async move {
                // Recorded before it is made, so that cleanup knows of it after any crash.
                context.making(folder.display().to_string()).await?;
                fs::create_dir_all(folder).map_err(StepError::transient)
            }
        })
        .create_role(|_| async { Ok(()) })
        .migrate(|context| async move {
            context.set("version", "V3")?;
            Ok(())
        })
        .seed(move |context| {
            let file = seeds(&context).join("seed");
            async move {
                if context.job().tenant_id == "dora" {
                    return Err(StepError::permanent("the seed of dora is broken"));
                }
                Ok(fs::write(file, "seeded")?)
            }
        })
        .cleanup(move |context| {
            let folder = removes(&context);
            async move {
                for made in context.made() {
                    if made == folder.display().to_string() && folder.exists() {
                        fs::remove_dir_all(&folder)?;
                    }
                }
                Ok(())
            }
        })
}
