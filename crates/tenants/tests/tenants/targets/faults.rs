//! Faults in every step, on both engines.

use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use slipway_tenants::targets::{CommandStep, Target, Work};
use slipway_tenants::testing::{quick, survives_every_fault};
use slipway_tenants::{Cancel, ClaimFrom, Error, NewJob, Options, Outcome, Step, StepError};

use slipway_testkit::wait::until;

use super::site::{Notes, Site, sites, work};

/// A ready tenant has all of it, another one nothing.
async fn check(site: &Site, tenant: &str, ready: bool) -> Result<(), String> {
    let objects = site.objects(tenant).await;
    if !ready {
        return if objects.is_empty() { Ok(()) } else { Err(format!("left: {objects:?}")) };
    }
    let drift = site.target().await.drift(&site.names(tenant), false).await;
    let drift = drift.map_err(|error| error.message)?;
    let rows = site.number(tenant, "SELECT count(*) FROM orders").await;
    match (drift.differences.is_empty(), rows) {
        (true, 1) => Ok(()),
        _ => Err(format!("{rows} rows, {drift:?}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_fault_in_every_step_is_borne() {
    for site in sites("everyfault").await {
        site.usual_files();
        let steps = site.steps().await;
        let check = async |tenant: &str, ready: bool| check(&site, tenant, ready).await;
        survives_every_fault(&site.store, &steps, check).await.expect("all of them");
    }
}

async fn step(target: &dyn Target, step: Step, work: &Work<'_>) -> Result<(), StepError> {
    match step {
        Step::CreateSchema => target.create_schema(work).await,
        Step::CreateRole => target.create_role(work).await,
        Step::Migrate => target.migrate(work).await.map(drop),
        Step::Seed => target.seed(work).await,
        Step::Cleanup => {
            for object in work.names.objects().iter().rev() {
                target.remove(work, object).await?;
            }
            Ok(())
        }
    }
}

/// The worker dies before each entry of the journal; the next one goes on, or cleans up.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_journal_and_effect_is_borne() {
    for site in sites("journal").await {
        site.usual_files();
        let target = site.target().await;
        for dies_after in 0..4 {
            for ends_well in [true, false] {
                let tenant = format!("t{dies_after}{}", u8::from(ends_well));
                let (names, notes) = (site.names(&tenant), Notes::default());
                *notes.fails_after.lock().expect("free") = Some(dies_after);
                let all = [Step::CreateSchema, Step::CreateRole, Step::Migrate, Step::Seed];
                for of in all {
                    if step(&*target, of, &work(&names, (1, 1), &notes)).await.is_err() {
                        break;
                    }
                }
                *notes.fails_after.lock().expect("free") = None;
                let again = work(&names, (1, 2), &notes);
                for of in all {
                    step(&*target, of, &again).await.expect("the second worker");
                }
                if !ends_well {
                    for left in [1_usize, 2, 3, 0] {
                        *notes.fails_after.lock().expect("free") = left.checked_sub(1);
                        let _died =
                            step(&*target, Step::Cleanup, &work(&names, (1, 3), &notes)).await;
                    }
                    assert_eq!(notes.made(), [""; 0]);
                }
                check(&site, &tenant, ends_well).await.expect(&tenant);
            }
        }
    }
}

/// Polls a future this often and then drops it, as a crash of its worker would.
async fn crash_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let (mut future, mut left) = (std::pin::pin!(future), polls);
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// The worker dies wherever it waits for the target, one tenant for each such moment. The next
/// worker finishes the tenant, or removes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_at_any_moment_is_borne() {
    for site in sites("moments").await {
        site.usual_files();
        let local = tokio::task::LocalSet::new();
        local.run_until(crash_at_every_moment(Rc::new(site))).await;
    }
}

async fn crash_at_every_moment(site: Rc<Site>) {
    let target = site.target().await;
    let mut running = tokio::task::JoinSet::new();
    let mut survived = 0;
    // When a few ran to their end, every earlier moment had its crash.
    for polls in (1..).take_while(|polls| *polls < 1_000) {
        let (target, site) = (target.clone(), Rc::clone(&site));
        running.spawn_local(async move { crash_one(&*target, &site, polls).await });
        if running.len() >= 8 {
            let done = running.join_next().await.expect("one").expect("no panic");
            survived += usize::from(done);
        }
        if survived > 3 {
            break;
        }
    }
    assert!(survived > 3, "no worker comes to its end");
    while let Some(done) = running.join_next().await {
        done.expect("no panic");
    }
}

/// Whether the worker ended before its crash.
async fn crash_one(target: &dyn Target, site: &Site, polls: usize) -> bool {
    let tenant = format!("crash{polls}");
    let (names, notes) = (site.names(&tenant), Notes::default());
    let make = async |token| {
        for of in [Step::CreateSchema, Step::CreateRole, Step::Migrate, Step::Seed] {
            step(target, of, &work(&names, (1, token), &notes)).await?;
        }
        Ok::<_, StepError>(())
    };
    let ended = crash_after(polls, make(1)).await;
    let ends_well = polls.is_multiple_of(2);
    until(Duration::from_secs(20), "the next worker", async || match ends_well {
        true => make(2).await.is_ok(),
        false => step(target, Step::Cleanup, &work(&names, (1, 2), &notes)).await.is_ok(),
    })
    .await;
    check(site, &tenant, ends_well).await.expect(&tenant);
    ended.is_some()
}

/// Two workers have the same job, one of them late: whoever is first, the tenant is whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_workers_at_once_make_one_tenant() {
    for site in sites("two").await {
        site.usual_files();
        let target = site.target().await;
        for n in 0..6 {
            let tenant = format!("twice{n}");
            let (names, notes) = (site.names(&tenant), Notes::default());
            let worker = async |token: i64| {
                for of in [Step::CreateSchema, Step::CreateRole, Step::Migrate, Step::Seed] {
                    step(&*target, of, &work(&names, (1, token), &notes)).await?;
                }
                Ok::<_, StepError>(())
            };
            let (_late, current) = tokio::join!(worker(1), worker(2));
            if current.is_err() {
                worker(3).await.expect("tried again");
            }
            check(&site, &tenant, true).await.expect(&tenant);
        }
    }
}

fn command(name: &str, script: &str) -> CommandStep {
    CommandStep {
        name: name.to_owned(),
        before: None,
        after: None,
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        deadline_seconds: 1,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_beside_the_built_in_steps() {
    for mut site in sites("commands").await {
        site.usual_files();
        let log = site.folder.path().join("log");
        let note = format!("cat >> {0}; echo >> {0}", log.display());
        site.settings.steps = vec![
            CommandStep { before: Some(Step::CreateSchema), ..command("first", &note) },
            CommandStep { after: Some(Step::Seed), ..command("last", &note) },
        ];
        assert_eq!(site.provision("j", "acme").await, Ok(Outcome::Ready));
        let text = std::fs::read_to_string(&log).expect("a log");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let seen: Vec<_> = lines
            .iter()
            .map(|l| (l["name"].as_str(), l["step"].as_str(), l["when"].as_str()))
            .collect();
        let expected = [
            (Some("first"), Some("create_schema"), Some("before")),
            (Some("last"), Some("seed"), Some("after")),
        ];
        assert_eq!(seen, expected);
        assert!(!text.contains("password") && !text.contains("postgres://"), "{text}");

        // It never ends: bounded tries, then everything is cleaned up.
        site.settings.steps =
            vec![CommandStep { after: Some(Step::Migrate), ..command("hangs", "sleep 600") }];
        site.store.upsert(&NewJob::new("hangs", "hanging")).await.expect("a job");
        let executor = site.executor_with(Options { step_attempts: 1, ..quick() }).await;
        let ended = executor.run("hangs").await;
        assert!(
            matches!(&ended, Err(Error::JobFailed { last_error, .. }) if last_error.contains("hangs took longer")),
            "{ended:?}"
        );
        check(&site, "hanging", false).await.expect("nothing left");
        site.settings.steps =
            vec![CommandStep { after: Some(Step::Seed), ..command("no", "echo no >&2; exit 3") }];
        let ended = site.provision("no", "refused").await;
        assert!(
            matches!(&ended, Err(Error::JobFailed { last_error, .. }) if last_error.contains("exit status: 3: no")),
            "{ended:?}"
        );
        check(&site, "refused", false).await.expect("nothing left");
    }
}

/// The target cannot be reached: the job is parked, nothing is cleaned up or made.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_is_away_parks_the_job() {
    for site in sites("away").await {
        site.usual_files();
        let gone = match &site.database {
            Some(database) => {
                let name = database.name();
                database.execute(&[&format!("ALTER ROLE {name} CONNECTION LIMIT 0")]).await;
                "too many connections"
            }
            None => {
                std::fs::write(site.folder.path().join("tenants"), "no folder").expect("a file");
                "tenants"
            }
        };
        let store = &site.store;
        store.upsert(&NewJob::new("j", "acme")).await.expect("a job");
        let executor = site.executor_with(Options { step_attempts: 100, ..quick() }).await;
        let claimed = executor.claim(ClaimFrom::Job("j"), 1).await.expect("a claim");
        let ended = executor.work(claimed, &Cancel::new()).await;
        assert!(matches!(ended[0].1, Ok(Outcome::Parked { .. })), "{ended:?}");
        let job = store.get("j").await.expect("the job");
        assert!(job.last_error.contains(gone), "{}", job.last_error);
        match &site.database {
            Some(database) => {
                let name = database.name();
                database.execute(&[&format!("ALTER ROLE {name} CONNECTION LIMIT -1")]).await;
            }
            None => std::fs::remove_file(site.folder.path().join("tenants")).expect("removed"),
        }
        let options = Options { total: Duration::from_secs(20), ..quick() };
        let outcome = site.executor_with(options).await.run("j").await;
        assert_eq!(outcome, Ok(Outcome::Ready));
        check(&site, "acme", true).await.expect("whole");
    }
}
