//! What only PostgreSQL has: roles, grants, passwords.

use std::str::FromStr as _;
use std::time::{Duration, Instant};

use slipway_tenants::targets::SecretSink;
use slipway_tenants::testing::quick;
use slipway_tenants::{Cancel, ClaimFrom, Error, NewJob, Options, Outcome};
use slipway_testkit::network::Relay;
use slipway_testkit::random::Random;
use slipway_testkit::wait::until;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::site::{Notes, Site, postgres, work};

/// A connection as one of the roles, with the password of the sink.
async fn log_in(site: &Site, user: &str) -> Result<PgConnection, sqlx::Error> {
    let entry = site.secret(user).expect("a password");
    let options = PgConnectOptions::from_str(site.database.as_ref().expect("one").url())
        .expect("a url")
        .username(user)
        .password(entry["password"].as_str().expect("a password"));
    PgConnection::connect_with(&options).await
}

async fn run(connection: &mut PgConnection, sql: &str) -> Result<u64, String> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await;
    done.map(|done| done.rows_affected()).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_application_works_with_data_and_changes_no_structure() {
    let Some(site) = postgres("application").await else { return };
    site.usual_files();
    assert_eq!(site.provision("j", "Select-1").await, Ok(Outcome::Ready));
    let job = site.store.get("j").await.expect("the job");
    assert_eq!(job.metadata["version"], "1.1");
    let names = site.names("Select-1");
    let mut app = log_in(&site, &names.runtime()).await.expect("a session");
    assert_eq!(run(&mut app, "UPDATE orders SET note = 'x' WHERE id = 1").await, Ok(1));
    for refused in [
        "CREATE TABLE mine (id int)",
        "DROP TABLE orders",
        "TRUNCATE orders",
        "ALTER TABLE orders ADD COLUMN x int",
        "SELECT * FROM slipway_migrations",
        "SELECT * FROM slipway_tenants.ledger",
        "SET ROLE \"postgres\"",
    ] {
        let error = run(&mut app, refused).await.expect_err(refused);
        assert!(error.contains("permission denied") || error.contains("must be owner"), "{error}");
    }
}

/// What the migrator makes later, by us or by hand, is usable by the application, and by nobody
/// else.
#[tokio::test(flavor = "multi_thread")]
async fn default_privileges_reach_later_tables() {
    let Some(site) = postgres("defaults").await else { return };
    site.usual_files();
    for tenant in ["acme", "other"] {
        assert_eq!(site.provision(tenant, tenant).await, Ok(Outcome::Ready));
    }
    let names = site.names("acme");
    let mut migrator = log_in(&site, &names.migrator()).await.expect("a session");
    let made = "CREATE TABLE later (id serial PRIMARY KEY, n int); \
                CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'";
    run(&mut migrator, made).await.expect("the owner of the schema");
    let mut app = log_in(&site, &names.runtime()).await.expect("a session");
    assert_eq!(run(&mut app, "INSERT INTO later (n) VALUES (one())").await, Ok(1));
    let mut other = log_in(&site, &site.names("other").runtime()).await.expect("a session");
    let refused = run(&mut other, &format!("SELECT \"{}\".one()", names.schema())).await;
    assert!(refused.expect_err("refused").contains("permission denied"));
    for attribute in ["rolsuper", "rolcreatedb", "rolcreaterole", "rolreplication", "rolbypassrls"]
    {
        let sql = format!(
            "SELECT count(*) FROM pg_roles WHERE {attribute} AND rolname LIKE '{}%'",
            site.settings.prefix
        );
        assert_eq!(site.number("acme", &sql).await, 0, "{attribute}");
    }
    let members = "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member \
                   WHERE r.rolcreaterole AND NOT r.rolsuper AND NOT m.admin_option";
    assert_eq!(site.number("acme", members).await, 0, "the provisioner gave everything back");
    let stored = format!(
        "SELECT count(*) FROM pg_authid WHERE rolpassword LIKE 'SCRAM-SHA-256$4096:%' \
                          AND rolname LIKE '{}%'",
        site.settings.prefix
    );
    assert_eq!(site.number("acme", &stored).await, 4);
}

/// A sink that fails or hangs parks the job, and no role can log in before it has its password.
#[tokio::test(flavor = "multi_thread")]
async fn no_password_works_that_the_sink_has_not() {
    let Some(mut site) = postgres("sink").await else { return };
    site.usual_files();
    let directory = site.settings.secrets.clone();
    let (names, notes) = (site.names("acme"), Notes::default());
    let work = work(&names, (1, 1), &notes);
    site.target().await.create_schema(&work).await.expect("a schema");
    for script in ["cat >&2; exit 1", "sleep 600", "cat; exit 75"] {
        site.settings.secrets = Some(SecretSink {
            directory: None,
            command: Some(["/bin/sh", "-c", script].map(str::to_owned).to_vec()),
            timeout_seconds: 1,
        });
        let error = site.target().await.create_role(&work).await.unwrap_err();
        assert!(error.is_transient() && error.message.contains("secret sink"), "{error:?}");
        assert!(!error.message.contains("password"), "{error:?}");
        let open = format!(
            "SELECT count(*) FROM pg_authid WHERE (rolcanlogin OR rolpassword IS NOT NULL) \
                            AND rolname LIKE '{}%'",
            site.settings.prefix
        );
        assert_eq!(site.number("acme", &open).await, 0);
    }
    site.settings.secrets = directory;
    let target = site.target().await;
    target.create_role(&work).await.expect("a sink that works");
    let first = site.secret(&names.runtime()).expect("a password");
    target.create_role(&work).await.expect("again");
    assert_eq!(site.secret(&names.runtime()), Some(first), "no rotation by a repetition");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_sessions_and_logins() {
    let Some(site) = postgres("sessions").await else { return };
    site.usual_files();
    assert_eq!(site.provision("j", "acme").await, Ok(Outcome::Ready));
    let (target, names, notes) = (site.target().await, site.names("acme"), Notes::default());
    let mut app = log_in(&site, &names.runtime()).await.expect("a session");
    target.close(&work(&names, (2, 1), &notes)).await.expect("closed");
    assert!(run(&mut app, "SELECT 1").await.is_err(), "the session is over");
    let refused = log_in(&site, &names.runtime()).await.expect_err("no login");
    assert!(refused.to_string().contains("not permitted to log in"), "{refused}");
    let drift = target.drift(&names, false).await.expect("drift");
    assert_eq!(drift.differences, [], "closed is as it should be");
    target.reopen(&work(&names, (2, 2), &notes)).await.expect("open");
    let mut app = log_in(&site, &names.runtime()).await.expect("the same password");
    assert_eq!(run(&mut app, "UPDATE orders SET note = 'x'").await, Ok(1));
}

/// A migration that does not get its lock gives way again and again, and then waits for later.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_taken_stops_nobody_for_long() {
    let Some(mut site) = postgres("locks").await else { return };
    site.usual_files();
    assert_eq!(site.provision("j", "acme").await, Ok(Outcome::Ready));
    (site.settings.lock_timeout_ms, site.settings.lock_attempts) = (50, 2);
    site.migration("V3__alter.sql", "ALTER TABLE orders ADD COLUMN more int");
    let (target, names, notes) = (site.target().await, site.names("acme"), Notes::default());
    let database = site.database.as_ref().expect("one");
    let held = database.hold_lock(&format!("\"{}\".orders", names.schema())).await;
    let error = target.migrate(&work(&names, (2, 1), &notes)).await.unwrap_err();
    assert!(error.is_transient() && error.message.contains("V3__alter.sql"), "{error:?}");
    drop(held);
    until(Duration::from_secs(10), "the lock to be free", async || {
        target.migrate(&work(&names, (2, 1), &notes)).await.is_ok()
    })
    .await;
}

/// Puts a relay before the target, for whoever opens it from now on.
async fn behind_relay(site: &Site) -> Relay {
    let dsn = std::fs::read_to_string(site.folder.path().join("target")).expect("the target");
    let options = PgConnectOptions::from_str(&dsn).expect("a url");
    let address = format!("{}:{}", options.get_host(), options.get_port());
    let relay = Relay::to(address.parse().expect("an address")).await.expect("a relay");
    let through = dsn.replacen(&address, &relay.address().to_string(), 1);
    assert_ne!(through, dsn);
    std::fs::write(site.folder.path().join("target"), through).expect("written");
    relay
}

/// Answers that get lost, also that of a commit: every file is applied once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_answers_apply_nothing_twice() {
    let Some(site) = postgres("lost").await else { return };
    for n in 1..=20 {
        site.migration(&format!("V{n}__n.sql"), &format!("CREATE TABLE t{n} (id int)"));
    }
    let direct = site.target().await;
    let (names, notes) = (site.names("acme"), Notes::default());
    direct.create_schema(&work(&names, (1, 1), &notes)).await.expect("a schema");
    let relay = behind_relay(&site).await;
    let target = site.target().await;
    let mut random = Random::new(17);
    let migrate = async {
        loop {
            match target.migrate(&work(&names, (1, 2), &notes)).await {
                Ok(migrated) => return migrated,
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
        }
    };
    let cut = async {
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(random.between(3, 25))).await;
            relay.cut();
            tokio::time::sleep(Duration::from_millis(random.between(1, 5))).await;
            relay.restore();
        }
    };
    let (migrated, ()) = tokio::join!(migrate, cut);
    assert_eq!(migrated.version.as_deref(), Some("20"));
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    assert_eq!(site.number("acme", tables).await, 21);
    assert_eq!(site.number("acme", "SELECT count(*) FROM slipway_migrations").await, 20);
}

/// A role that somebody else made is not taken over, whatever it may do.
#[tokio::test(flavor = "multi_thread")]
async fn an_existing_role_is_refused() {
    let Some(site) = postgres("role").await else { return };
    site.usual_files();
    let names = site.names("acme");
    let database = site.database.as_ref().expect("one");
    for role in [names.runtime(), names.migrator()] {
        database.execute(&[&format!("CREATE ROLE \"{role}\"")]).await;
        let ended = site.provision(&role, "acme").await;
        let Err(Error::JobFailed { last_error, .. }) = ended else { panic!("{ended:?}") };
        assert!(last_error.contains(&format!("role {role} exists")), "{last_error}");
        assert_eq!(site.objects("acme").await, [format!("role {role}")]);
        database.execute(&[&format!("DROP ROLE \"{role}\"")]).await;
    }
}

/// A superuser is a provisioner, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_superuser_may_provision() {
    let Some(site) = postgres("superuser").await else { return };
    site.usual_files();
    let url = site.database.as_ref().expect("one").url();
    std::fs::write(site.folder.path().join("target"), url).expect("written");
    assert_eq!(site.provision("j", "acme").await, Ok(Outcome::Ready));
    let (target, names, notes) = (site.target().await, site.names("acme"), Notes::default());
    assert_eq!(target.drift(&names, true).await.expect("drift").differences, []);
    target.close(&work(&names, (2, 1), &notes)).await.expect("closed");
    target.destroy(&work(&names, (2, 2), &notes)).await.expect("gone");
    assert_eq!(site.objects("acme").await, [""; 0]);
}

/// Many tenants at the same time do not stand in each other's way, and share few connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tenants_are_made_at_once() {
    let Some(mut site) = postgres("many").await else { return };
    site.usual_files();
    site.settings.connections = 4;
    for n in 0..24 {
        let job = NewJob::new(format!("j{n}"), format!("t{n}")).in_partition("many");
        site.store.upsert(&job).await.expect("a job");
    }
    // One try for each step: nothing may fail by chance.
    let executor = site.executor_with(Options { step_attempts: 1, ..quick() }).await;
    let claimed = executor.claim(ClaimFrom::Partition("many"), 100).await.expect("a claim");
    let ended = executor.work(claimed, &Cancel::new()).await;
    assert_eq!(ended.len(), 24);
    assert!(ended.iter().all(|(_, outcome)| *outcome == Ok(Outcome::Ready)), "{ended:?}");
}

/// The network fails again and again while jobs run: every tenant is whole in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_network_that_fails_costs_time_only() {
    let Some(site) = postgres("network").await else { return };
    site.usual_files();
    let relay = behind_relay(&site).await;
    for n in 0..8 {
        let job = NewJob::new(format!("j{n}"), format!("t{n}")).in_partition("network");
        site.store.upsert(&job).await.expect("a job");
    }
    let executor = site.executor_with(Options { step_attempts: 1_000, ..quick() }).await;
    let mut random = Random::new(17);
    let run = async {
        for n in 0..8 {
            let ended = executor.run(&format!("j{n}")).await;
            assert_eq!(ended, Ok(Outcome::Ready), "job {n}");
        }
    };
    let cut = async {
        for _ in 0..25 {
            tokio::time::sleep(Duration::from_millis(random.between(3, 40))).await;
            relay.cut();
            tokio::time::sleep(Duration::from_millis(random.between(1, 5))).await;
            relay.restore();
        }
    };
    tokio::join!(run, cut);
    let target = site.target().await;
    for n in 0..8 {
        let tenant = format!("t{n}");
        let drift = target.drift(&site.names(&tenant), false).await.expect("drift");
        assert_eq!(drift.differences, [], "{tenant}");
        assert_eq!(site.number(&tenant, "SELECT count(*) FROM orders").await, 1);
    }
}

/// A server that is gone without a word is not waited for longer than a statement may take, and
/// nothing that a person may read has the password of the provisioner.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_given_up() {
    let Some(mut site) = postgres("silent").await else { return };
    site.usual_files();
    site.settings.statement_timeout_seconds = 1;
    let relay = behind_relay(&site).await;
    let (target, names, notes) = (site.target().await, site.names("acme"), Notes::default());
    target.create_schema(&work(&names, (1, 1), &notes)).await.expect("a schema");
    assert!(!format!("{target:?}").contains("provisioner"), "{target:?}");
    relay.swallow();
    let started = Instant::now();
    let error = target.migrate(&work(&names, (1, 1), &notes)).await.unwrap_err();
    assert!(error.is_transient() && error.message.contains("state unknown"), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    relay.restore();
    until(Duration::from_secs(20), "the server to notice", async || {
        target.migrate(&work(&names, (1, 2), &notes)).await.is_ok()
    })
    .await;
}

/// What others built on a tenant is not removed with it: a person decides first.
#[tokio::test(flavor = "multi_thread")]
async fn what_depends_on_a_tenant_holds_up_its_end() {
    let Some(site) = postgres("dependents").await else { return };
    site.usual_files();
    site.migration(
        "V2__own.sql",
        "CREATE TYPE colour AS ENUM ('red');
         CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT n * 2';
         CREATE TABLE parts (id bigserial, at date NOT NULL, hue colour) PARTITION BY RANGE (at);
         CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
         CREATE INDEX parts_twice ON parts_1 (twice(id::integer));
         CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
         CREATE TRIGGER noted BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION noted();
         CREATE VIEW names AS SELECT note FROM orders;
         CREATE MATERIALIZED VIEW numbers AS SELECT id FROM orders",
    );
    let notes = super::both::made(&site, "acme").await;
    let (target, names) = (site.target().await, site.names("acme"));
    let database = site.database.as_ref().expect("one");
    let (schema, runtime) = (names.schema(), names.runtime());
    let foreign = [
        (format!("CREATE VIEW report AS SELECT id FROM \"{schema}\".orders"), "DROP VIEW report"),
        (format!("CREATE VIEW report AS SELECT * FROM \"{schema}\".names"), "DROP VIEW report"),
        (
            format!("CREATE TABLE report (id integer REFERENCES \"{schema}\".orders (id))"),
            "DROP TABLE report",
        ),
        (format!("CREATE TABLE report (hue \"{schema}\".colour)"), "DROP TABLE report"),
        (
            format!(
                "CREATE TABLE report PARTITION OF \"{schema}\".parts \
                 FOR VALUES FROM ('2021-01-01') TO ('2022-01-01')"
            ),
            "DROP TABLE report",
        ),
        (
            format!(
                "CREATE TABLE report (id integer); ALTER TABLE report OWNER TO \"{runtime}\"; \
                 CREATE VIEW reported AS SELECT * FROM report"
            ),
            "DROP VIEW reported; DROP TABLE report",
        ),
    ];
    let before = site.objects("acme").await;
    for (n, (make, remove)) in (1..).zip(&foreign) {
        let statements: Vec<_> = make.split("; ").collect();
        database.execute(&statements).await;
        let later = work(&names, (2, n), &notes);
        let mut errors = vec![target.destroy(&later).await.unwrap_err()];
        for object in names.objects() {
            errors.push(target.remove(&later, &object).await.unwrap_err());
        }
        for error in errors {
            assert!(error.is_waiting() && error.message.contains("public.report"), "{error:?}");
        }
        assert_eq!(site.number("acme", "SELECT count(*) FROM orders").await, 1, "{make}");
        let statements: Vec<_> = remove.split("; ").collect();
        database.execute(&statements).await;
    }
    assert_eq!(site.objects("acme").await, before);
    // What its own roles have elsewhere is its own.
    let own = [
        "CREATE TABLE report (id integer)".to_owned(),
        format!("ALTER TABLE report OWNER TO \"{runtime}\""),
    ];
    database.execute(&[&own[0], &own[1]]).await;
    target.destroy(&work(&names, (3, 1), &notes)).await.expect("gone");
    assert_eq!(site.objects("acme").await, [""; 0]);
}
