//! What holds on both engines: from the first step to the proof that all is gone.

use slipway_tenants::targets::{
    DifferenceKind, Engine, Fence, LostWork, NameError, TenantNames, Work,
};
use slipway_tenants::{Error, Outcome};

use sqlx::{Connection as _, PgConnection, SqliteConnection};

use super::site::{Notes, Site, sites, sqlite, work};

pub(super) async fn made(site: &Site, tenant: &str) -> Notes {
    let (target, names, notes) = (site.target().await, site.names(tenant), Notes::default());
    let work = work(&names, (1, 1), &notes);
    target.create_schema(&work).await.expect("a schema");
    target.create_role(&work).await.expect("a role");
    target.migrate(&work).await.expect("tables");
    target.seed(&work).await.expect("rows");
    notes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_makes_a_tenant_with_exactly_its_objects() {
    for site in sites("makes").await {
        site.usual_files();
        for tenant in ["acme", "user", "Upper-Case_1"] {
            let job = format!("create-{tenant}");
            assert_eq!(site.provision(&job, tenant).await, Ok(Outcome::Ready), "{tenant}");
            assert_eq!(site.store.get(&job).await.expect("the job").metadata["version"], "1.1");
            assert_eq!(site.numbers(tenant, "SELECT count(*) FROM orders").await, [1]);
            let rows = "SELECT count(*) FROM slipway_migrations WHERE status = 'done'";
            assert_eq!(site.numbers(tenant, rows).await, [3]);
            let made = site.store.get(&job).await.expect("the job").made.expect("a record");
            assert_eq!(made, site.names(tenant).objects());
            let drift = site.target().await.drift(&site.names(tenant), true).await.expect("drift");
            assert_eq!(drift.differences, []);
        }
    }
}

/// Whatever a tenant, a prefix or a version is called, it is a name or a refusal, never SQL.
#[tokio::test(flavor = "multi_thread")]
async fn injections_are_refused_or_quoted() {
    for mut site in sites("injections").await {
        site.usual_files();
        assert_eq!(site.provision("fine", "acme").await, Ok(Outcome::Ready));
        for tenant in ["x\"; DROP SCHEMA acme CASCADE; --", "x'; SELECT 1; --", "../acme", "a b"] {
            let refused = TenantNames::of(&site.settings, tenant);
            assert!(matches!(refused, Err(NameError::Letters { .. })), "{tenant}: {refused:?}");
            let ended = site.provision(&format!("job {tenant}"), tenant).await;
            assert!(matches!(ended, Err(Error::JobFailed { .. })), "{ended:?}");
        }
        let (target, names) = (site.target().await, site.names("acme"));
        let notes = Notes::default();
        let later = work(&names, (9, 1), &notes);
        for object in
            ["schema x\"; DROP TABLE orders; --", "schema public", "role postgres", "file ../../x"]
        {
            let error = target.remove(&later, object).await.unwrap_err();
            assert!(!error.is_transient() && error.message.contains("left alone"), "{error:?}");
        }
        let version = "1'; DROP TABLE orders; --";
        let repair = slipway_tenants::targets::Repair::Applied;
        assert!(target.repair(&later, version, repair).await.is_err());
        site.seed("b'; DROP TABLE orders; --.sql", "INSERT INTO orders VALUES (2, 'b')");
        target.seed(&later).await.expect("a name of a file is only a text");
        assert_eq!(site.number("acme", "SELECT count(*) FROM orders").await, 2);
        site.settings.prefix = "x\"; --".to_owned();
        let opened = slipway_tenants::targets::open(
            &site.settings,
            &slipway_tenants::targets::LocalResolver,
        );
        assert!(opened.await.unwrap_err().message.contains("prefix"));
    }
}

/// Something that exists is never adopted, and never removed by the cleanup of a job.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_existing_is_taken_over() {
    for site in sites("existing").await {
        site.usual_files();
        let names = site.names("acme");
        match &site.database {
            Some(database) => {
                database.execute(&[&format!("CREATE SCHEMA \"{}\"", names.schema())]).await;
            }
            None => {
                std::fs::create_dir_all(site.file("acme").parent().expect("one")).expect("one");
                std::fs::write(site.file("acme"), "precious").expect("a file");
            }
        }
        let before = site.objects("acme").await;
        let Err(Error::JobFailed { last_error, .. }) = site.provision("j", "acme").await else {
            panic!("it was adopted");
        };
        assert!(last_error.contains(names.schema()) && last_error.contains("taken over"));
        assert_eq!(site.objects("acme").await, before);
        assert!(site.store.get("j").await.expect("the job").leaked.is_empty());
    }
}

/// Two tenants whose names come to the same schema do not meet in it, and a new job does not
/// adopt what an earlier one made.
#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_and_another_job_are_refused() {
    for site in sites("another").await {
        site.usual_files();
        let first = made(&site, "a-b").await;
        let (target, same) = (site.target().await, site.names("a_b"));
        let notes = Notes::default();
        let error = target.create_schema(&work(&same, (2, 1), &notes)).await.unwrap_err();
        assert!(!error.is_transient(), "{error:?}");
        let names = site.names("a-b");
        let error = target.create_schema(&work(&names, (2, 1), &notes)).await.unwrap_err();
        assert!(!error.is_transient() && error.message.contains("another job"), "{error:?}");
        assert_eq!(notes.made(), [""; 0]);
        target.destroy(&work(&same, (9, 9), &notes)).await.expect("it has nothing");
        assert_eq!(site.number("a-b", "SELECT count(*) FROM orders").await, 1);
        // Gone, the name is free for the other.
        target.destroy(&work(&names, (3, 1), &first)).await.expect("gone");
        target.create_schema(&work(&same, (1, 1), &notes)).await.expect("made");
        assert!(target.create_schema(&work(&names, (4, 1), &first)).await.is_err());
    }
}

/// Once a tenant is purged its name is free for a new one, whose numbers of work begin anew, and
/// a late worker of the old one has no right to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_free_again_after_a_purge() {
    for site in sites("again").await {
        site.usual_files();
        let (target, names) = (site.target().await, |id: &str| site.names("acme").owned_by(id));
        let (old, new, notes) = (names("old"), names("new"), Notes::default());
        target.create_schema(&work(&old, (1, 1), &notes)).await.expect("made");
        target.close(&work(&old, (2, 0), &notes)).await.expect("closed");
        target.destroy(&work(&old, (3, 0), &notes)).await.expect("purged");
        for step in 0..5 {
            let work = work(&new, (1, 1), &notes);
            match step {
                0 => target.create_schema(&work).await.expect("a schema"),
                1 => target.create_role(&work).await.expect("a role"),
                2 => drop(target.migrate(&work).await.expect("tables")),
                _ => target.seed(&work).await.expect("rows"),
            }
        }
        assert_eq!(target.fence(&new).await, Ok(Some(Fence { work: 1, token: 1 })));
        assert_eq!(target.fence(&old).await, Ok(None), "the name is not its own any more");
        let late = work(&old, (9, 9), &notes);
        for error in [
            target.create_schema(&late).await.unwrap_err(),
            target.migrate(&late).await.unwrap_err(),
            target.seed(&late).await.unwrap_err(),
        ] {
            let is_foreign = !error.is_transient() && !error.is_waiting();
            assert!(is_foreign, "another tenant has the name: {error:?}");
        }
        assert_eq!(site.number("acme", "SELECT count(*) FROM orders").await, 1);
    }
}

/// Two profiles, or two installations, have the same target and prefix and a tenant of the same
/// name. Whatever the second one does, the first one's tenant lives.
#[tokio::test(flavor = "multi_thread")]
async fn the_tenant_of_another_profile_is_left_alone() {
    for site in sites("profiles").await {
        site.usual_files();
        let (target, names) = (site.target().await, |id: &str| site.names("acme").owned_by(id));
        let (first, notes) = (names("first"), Notes::default());
        target.create_schema(&work(&first, (1, 1), &notes)).await.expect("a schema");
        target.create_role(&work(&first, (1, 1), &notes)).await.expect("a role");
        target.migrate(&work(&first, (1, 1), &notes)).await.expect("tables");
        let before = target.drift(&first, true).await.expect("drift");
        let (other, second) = (site.target().await, names("second"));
        // It was told that it made them, as after a cleanup that leaked.
        let leaked = Notes::default();
        *leaked.made.lock().expect("nobody panics inside") = second.objects();
        for notes in [&leaked, &Notes::default()] {
            let later = work(&second, (9, 9), notes);
            let error = other.create_schema(&later).await.unwrap_err();
            assert!(!error.is_transient() && error.message.contains("exists"), "{error:?}");
            other.migrate(&later).await.unwrap_err();
            other.export(&second).await.map(drop).unwrap_err();
            // It has nothing there, so all of this is done already.
            other.close(&later).await.expect("closed");
            other.reopen(&later).await.expect("open");
            for object in second.objects() {
                other.remove(&later, &object).await.expect("removed");
            }
            other.destroy(&later).await.expect("gone");
            assert_eq!(notes.made(), [""; 0]);
        }
        assert_eq!(target.drift(&first, true).await, Ok(before), "nothing was changed");
        assert_eq!(target.fence(&first).await, Ok(Some(Fence { work: 1, token: 1 })));
        target.seed(&work(&first, (1, 2), &notes)).await.expect("it is open");
        assert_eq!(site.number("acme", "SELECT count(*) FROM orders").await, 1);
    }
}

/// Development versions wrote the name of a tenant where its id is now. Whose it is nobody can
/// tell, so neither is it taken over nor does a decommission say that it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_with_names_waits_for_its_ids() {
    for site in sites("names").await {
        site.usual_files();
        let notes = made(&site, "acme").await;
        let (target, names) = (site.target().await, site.names("acme").owned_by("id"));
        let later = work(&names, (9, 1), &notes);
        for error in [
            target.migrate(&later).await.unwrap_err(),
            target.close(&later).await.unwrap_err(),
            target.remove(&later, &names.objects()[0]).await.unwrap_err(),
            target.destroy(&later).await.unwrap_err(),
        ] {
            assert!(error.message.contains("write its id id there"), "{error:?}");
        }
        assert_eq!(site.number("acme", "SELECT count(*) FROM orders").await, 1);
    }
}

/// A worker that was paused beyond its lease wakes up and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_lower_fence_changes_nothing() {
    for site in sites("fence").await {
        site.usual_files();
        let notes = made(&site, "acme").await;
        let (target, names) = (site.target().await, site.names("acme"));
        target.migrate(&work(&names, (2, 5), &notes)).await.expect("nothing is owed");
        assert_eq!(target.fence(&names).await, Ok(Some(Fence { work: 2, token: 5 })));
        site.migration("V9__late.sql", "CREATE TABLE late (id int)");
        site.seed("z.sql", "INSERT INTO orders VALUES (9, 'late')");
        let objects = site.objects("acme").await;
        for fence in [(2, 4), (1, 99)] {
            let late = work(&names, fence, &notes);
            let mut errors = vec![
                target.create_schema(&late).await.unwrap_err(),
                target.migrate(&late).await.unwrap_err(),
                target.seed(&late).await.unwrap_err(),
                target.close(&late).await.unwrap_err(),
                target.reopen(&late).await.unwrap_err(),
                target.destroy(&late).await.unwrap_err(),
                target
                    .repair(&late, "1", slipway_tenants::targets::Repair::Applied)
                    .await
                    .unwrap_err(),
            ];
            if site.settings.engine == Engine::Postgres {
                errors.push(target.create_role(&late).await.unwrap_err());
            }
            for object in names.objects() {
                errors.push(target.remove(&late, &object).await.unwrap_err());
            }
            for error in errors {
                assert!(error.is_waiting() && error.message.contains("ahead"), "{error:?}");
            }
        }
        assert_eq!(site.objects("acme").await, objects);
        assert_eq!(site.number("acme", "SELECT count(*) FROM orders").await, 1);
        assert_eq!(target.fence(&names).await, Ok(Some(Fence { work: 2, token: 5 })));
        // Also when the tenant is gone: a late worker does not make it again.
        target.destroy(&work(&names, (3, 1), &notes)).await.expect("gone");
        assert_eq!(site.objects("acme").await, [""; 0]);
        let late = target.create_schema(&work(&names, (2, 6), &notes)).await.unwrap_err();
        assert!(late.message.contains("ahead"), "{late:?}");
        assert_eq!(site.objects("acme").await, [""; 0]);
        target.create_schema(&work(&names, (4, 1), &notes)).await.expect("a new tenant");
    }
}

/// The database was restored: it knows the work up to 2, and gives out numbers from 1,000 on.
#[tokio::test(flavor = "multi_thread")]
async fn work_that_the_database_lost_is_not_overwritten() {
    for site in sites("lost").await {
        site.usual_files();
        let notes = made(&site, "acme").await;
        let (target, names) = (site.target().await, site.names("acme"));
        let lost = Some(LostWork { after: 2, before: 1_000 });
        let restored = |number| Work { lost, ..work(&names, (number, 1), &notes) };
        target.migrate(&work(&names, (3, 1), &notes)).await.expect("in the lost time");
        let objects = site.objects("acme").await;
        for number in [1_000, 5_000] {
            let late = restored(number);
            let mut errors = vec![
                target.create_schema(&late).await.unwrap_err(),
                target.migrate(&late).await.unwrap_err(),
                target.seed(&late).await.unwrap_err(),
                target.close(&late).await.unwrap_err(),
                target.destroy(&late).await.unwrap_err(),
            ];
            for object in names.objects() {
                errors.push(target.remove(&late, &object).await.unwrap_err());
            }
            for error in errors {
                assert!(error.is_waiting() && error.message.contains("was restored"), "{error:?}");
            }
        }
        assert_eq!(site.objects("acme").await, objects);
        assert_eq!(target.fence(&names).await, Ok(Some(Fence { work: 3, token: 1 })));
        // A person has looked: nothing is lost any more.
        target.migrate(&work(&names, (1_000, 1), &notes)).await.expect("accepted");
        // What was done after the restore is known.
        target.migrate(&restored(1_001)).await.expect("not lost");
        // What the backup knew is no obstacle.
        let notes = made(&site, "other").await;
        let names = site.names("other");
        target.migrate(&Work { lost, ..work(&names, (1_000, 1), &notes) }).await.expect("known");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_closed_reopened_and_destroyed() {
    for site in sites("close").await {
        site.usual_files();
        let notes = made(&site, "acme").await;
        let (target, names) = (site.target().await, site.names("acme"));
        let fenced = |token| work(&names, (2, token), &notes);
        for token in [1, 2] {
            target.close(&fenced(token)).await.expect("closed, however often");
        }
        for error in [
            target.migrate(&fenced(3)).await.unwrap_err(),
            target.seed(&fenced(3)).await.unwrap_err(),
            target
                .create_schema(&Work { journal: &Notes::default(), ..fenced(3) })
                .await
                .unwrap_err(),
        ] {
            assert!(!error.is_transient(), "{error:?}");
        }
        assert_eq!(target.fence(&names).await.expect("a fence").expect("one").work, 2);
        for token in [4, 5] {
            target.reopen(&fenced(token)).await.expect("open, however often");
        }
        assert_eq!(site.number("acme", "SELECT count(*) FROM orders").await, 1);
        assert_eq!(target.drift(&names, false).await.expect("drift").differences, []);
        target.close(&fenced(6)).await.expect("closed");
        for token in [7, 8] {
            target.destroy(&fenced(token)).await.expect("gone, however often");
        }
        assert_eq!((site.objects("acme").await, notes.made()), (vec![], vec![]));
        let drift = target.drift(&names, false).await.expect("drift");
        assert_eq!(drift.differences[0].kind, DifferenceKind::Object);
    }
}

/// What a job that failed left behind is decommissioned like a whole tenant, also if it is nothing:
/// a deletion that never ends could be neither cancelled nor restored.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_tenant_is_closed_reopened_and_destroyed() {
    for site in sites("part").await {
        site.usual_files();
        let (target, names) = (site.target().await, site.names("acme").owned_by("id"));
        for round in 0..4 {
            let notes = Notes::default();
            let fenced = |token| work(&names, (10 * round + 1, token), &notes);
            if round > 0 {
                target.create_schema(&fenced(1)).await.expect("a schema");
            }
            if round > 1 {
                target.create_role(&fenced(1)).await.expect("a role");
            }
            // The last round has a role without the schema.
            if round > 2 && site.database.is_some() {
                let schema = format!("schema {}", names.schema());
                target.remove(&fenced(1), &schema).await.expect("removed");
            }
            for token in [2, 4] {
                target.close(&fenced(token)).await.expect("closed");
                assert_eq!(logins(&site).await, 0, "round {round}");
                target.reopen(&fenced(token + 1)).await.expect("open");
                let first = if site.database.is_some() { 2 } else { 1 };
                assert_eq!(logins(&site).await > 0, round >= first, "round {round}");
            }
            target.close(&fenced(6)).await.expect("closed");
            target.destroy(&fenced(7)).await.expect("gone");
            assert_eq!((site.objects("acme").await, notes.made()), (vec![], vec![]));
        }
        // What somebody removed by hand holds up no decommission.
        let notes = Notes::default();
        let fenced = |token| work(&names, (90, token), &notes);
        target.create_schema(&fenced(1)).await.expect("a schema");
        match &site.database {
            Some(database) => {
                database.execute(&[&format!("DROP SCHEMA \"{}\" CASCADE", names.schema())]).await;
            }
            None => std::fs::remove_file(site.file("acme")).expect("removed"),
        }
        target.close(&fenced(2)).await.expect("closed");
        target.destroy(&fenced(3)).await.expect("gone");
        assert_eq!((site.objects("acme").await, notes.made()), (vec![], vec![]));
    }
}

/// How many roles of `acme` can log in; of a file, whether it is where an application looks.
async fn logins(site: &Site) -> i64 {
    let names = site.names("acme");
    let Some(database) = &site.database else {
        return i64::from(site.file("acme").exists());
    };
    let mut raw = PgConnection::connect(database.url()).await.expect("a connection");
    let sql = "SELECT count(*) FROM pg_roles WHERE rolname IN ($1, $2) AND rolcanlogin";
    let query = sqlx::query_scalar(sql).bind(names.migrator()).bind(names.runtime());
    query.fetch_one(&mut raw).await.expect("a number")
}

/// A file that an application has open stays where it is, whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_use_is_neither_moved_nor_removed() {
    let mut site = sqlite();
    site.settings.lock_timeout_ms = 50;
    site.usual_files();
    let notes = made(&site, "acme").await;
    let (target, names) = (site.target().await, site.names("acme"));
    let url = format!("sqlite:{}", site.file("acme").display());
    let mut app = SqliteConnection::connect(&url).await.expect("a connection");
    sqlx::query("SELECT 1 FROM orders").fetch_all(&mut app).await.expect("rows");
    for error in [
        target.close(&work(&names, (2, 1), &notes)).await.unwrap_err(),
        target.destroy(&work(&names, (2, 1), &notes)).await.unwrap_err(),
    ] {
        assert!(error.is_transient() && error.message.contains("in use"), "{error:?}");
    }
    let insert = "INSERT INTO orders VALUES (2, 'while it is open')";
    sqlx::query(insert).execute(&mut app).await.expect("it works on");
    app.close().await.expect("closed");
    target.close(&work(&names, (2, 1), &notes)).await.expect("closed");
    target.reopen(&work(&names, (2, 1), &notes)).await.expect("open");
    assert_eq!(site.number("acme", "SELECT count(*) FROM orders").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_found() {
    for site in sites("drift").await {
        site.usual_files();
        let _notes = made(&site, "acme").await;
        let (target, names) = (site.target().await, site.names("acme"));
        site.migration("V1__orders.sql", "CREATE TABLE orders (id integer PRIMARY KEY);");
        site.migration("V3__new.sql", "CREATE TABLE fresh (id int)");
        site.seed("a.sql", "SELECT 1");
        let found = |deep| {
            let (target, names) = (target.clone(), names.clone());
            async move {
                let drift = target.drift(&names, deep).await.expect("drift");
                let line = |d: &slipway_tenants::targets::Difference| {
                    format!("{:?} {}: {}", d.kind, d.object, d.found)
                };
                drift.differences.iter().map(line).collect::<Vec<_>>()
            }
        };
        let ledger = [
            "Ledger V1__orders.sql: changed afterwards",
            "Ledger V3__new.sql: not applied",
            "Ledger a.sql: changed afterwards",
        ];
        assert_eq!(found(false).await, ledger);
        // What somebody did by hand.
        let schema = names.schema();
        match &site.database {
            Some(database) => {
                let (migrator, runtime) = (names.migrator(), names.runtime());
                database
                    .execute(&[
                        &format!("CREATE TABLE \"{schema}\".by_hand (id int)"),
                        &format!("DROP INDEX \"{schema}\".items_orders"),
                        &format!("GRANT CREATE ON SCHEMA \"{schema}\" TO \"{runtime}\""),
                        &format!("REVOKE DELETE ON \"{schema}\".orders FROM \"{runtime}\""),
                        &format!("ALTER ROLE \"{migrator}\" CREATEDB"),
                    ])
                    .await;
                let found = found(true).await;
                for expected in [
                    "Owner table by_hand: postgres",
                    &format!("Grant schema {schema}: CREATE for {runtime}"),
                    &format!("Grant table orders: no DELETE for {runtime}"),
                    &format!("Object role {migrator}: SUPERUSER, CREATE… or the like"),
                    "Structure column orders.note: text",
                    "Structure column fresh.id: not there",
                    "Structure column by_hand.id: integer",
                    "Structure index items_orders: not there",
                ] {
                    assert!(found.iter().any(|line| line == expected), "{expected}: {found:#?}");
                }
                let left = "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'slipway_drift%') \
                            + (SELECT count(*) FROM pg_roles WHERE rolname LIKE 'slipway_drift%') \
                            + (SELECT count(*) FROM slipway_tenants.ledger WHERE tenant LIKE 'slipway%')";
                assert_eq!(site.numbers("acme", left).await, [0], "the temporary tenant is gone");
            }
            None => {
                site.numbers("acme", "DROP INDEX items_orders").await;
                let found = found(true).await;
                let structure = [
                    "Structure column fresh.id: not there",
                    "Structure column orders.note: TEXT",
                    "Structure index items_orders: not there",
                ];
                assert_eq!(found[3..], structure);
            }
        }
    }
}
