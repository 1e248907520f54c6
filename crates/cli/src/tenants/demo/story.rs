//! What happens in the demo of tenants, and what has to be true after each part.

use serde_json::{Value, json};
use slipway_wire::deletion::{Deletion, Restore};
use slipway_wire::operations::Explanation;
use slipway_wire::rollouts::{Rollout, RolloutStrategy};
use slipway_wire::tenants::{
    CreateTenantProfile, MigrateTenants, ProvisionTenant, Tenant, TenantJob, TenantProfile,
};

use super::site::{CLOSED, NOTHING, Site, WRONG_SEED};
use crate::client::Client;
use crate::demo::{Fact, Screen, expect};
use crate::error::Error;

/// The tenants that come up. The first is decommissioned and restored.
const GOOD: [&str; 4] = ["acme", "globex", "initech", "umbrella"];
/// The one whose seed fails.
const WRONG: &str = "hooli";

/// What a tenant has after its job, in use, and after the migration: its tables, plans and
/// customers.
const SEEDED: &str = "customers plans | basic pro | -";
const USED: &str = "customers plans | basic pro | ada";
const MIGRATED: &str = "customers orders plans | basic pro | ada";

/// How many tenants each part of the story reached, as it was verified.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub(super) tenants: usize,
    pub(super) ready: usize,
    pub(super) cleaned_up: usize,
    pub(super) migrated: usize,
    pub(super) decommissioned: usize,
    pub(super) restored: usize,
    pub(super) purged: usize,
}

/// `run` is the name of the project.
pub(super) async fn tell(
    client: &Client,
    run: &str,
    site: &Site,
    screen: &mut Screen<'_>,
) -> Result<Outcome, Error> {
    let mut story = Story { client, run, site, screen, outcome: Outcome::default() };
    story.provision().await?;
    story.clean_up().await?;
    story.migrate().await?;
    story.decommission_and_restore().await?;
    story.purge().await?;
    Ok(story.outcome)
}

struct Story<'a, 'b> {
    client: &'a Client,
    run: &'a str,
    site: &'a Site,
    screen: &'a mut Screen<'b>,
    outcome: Outcome,
}

impl Story<'_, '_> {
    async fn provision(&mut self) -> Result<(), Error> {
        let engine = self.site.engine();
        self.screen.heading(&format!("Two profiles on {engine}, and five tenants"));
        for (name, is_wrong) in [("shop", false), ("wrong-seed", true)] {
            let body = CreateTenantProfile {
                name: name.to_owned(),
                description: String::new(),
                settings: self.site.settings(is_wrong),
            };
            let _: TenantProfile = self.client.post(&["tenant-profiles"], &body).await?;
            self.screen.now(name, "the profile is made");
        }
        let of_shop = GOOD.iter().map(|name| (*name, "shop"));
        for (name, profile) in of_shop.chain([(WRONG, "wrong-seed")]) {
            let body = ProvisionTenant { name: name.to_owned(), profile: profile.to_owned() };
            let path = ["projects", self.run, "tenants"];
            let _: Tenant = self.client.post(&path, &body).await?;
            self.outcome.tenants += 1;
        }
        for name in GOOD {
            self.is(name, "ready").await?;
            self.has(name, SEEDED).await?;
            self.outcome.ready += 1;
            self.site.add_customer(name, "ada").await?;
            self.has(name, USED).await?;
        }
        let edges = self.edges(GOOD[0]).await?;
        let expected = "pending schema_created role_created migrated seeded ready";
        let fact = format!("the job of {} went its way", GOOD[0]);
        self.screen.check(Fact::equal(fact, expected, edges));
        Ok(())
    }

    /// The seed of one fails.
    async fn clean_up(&mut self) -> Result<(), Error> {
        self.screen.heading("The tenant whose seed fails is cleaned up and explained");
        self.is(WRONG, "failed").await?;
        self.has(WRONG, NOTHING).await?;
        let edges = self.edges(WRONG).await?;
        let expected = "pending schema_created role_created migrated cleanup failed";
        self.screen.check(Fact::equal(format!("the job of {WRONG} ended"), expected, edges));
        let found: Explanation = self.client.get(&["explain", "tenant", WRONG]).await?;
        let reason = found.failure.map(|failure| failure.reason).unwrap_or_default();
        let fact = "the explanation names the seed";
        self.screen.check(Fact::new(fact, reason.contains(WRONG_SEED), WRONG_SEED, reason));
        let remedy = format!("slipway tenant retry {WRONG}");
        let way_out = found.waiting_for.unwrap_or_default();
        let fact = "and says what to do";
        self.screen.check(Fact::new(fact, way_out.contains(&remedy), &remedy, &way_out));
        self.outcome.cleaned_up += 1;
        Ok(())
    }

    async fn migrate(&mut self) -> Result<(), Error> {
        self.screen.heading("A new migration reaches every tenant, canary first");
        self.site.write_next()?;
        let body = MigrateTenants {
            strategy: RolloutStrategy { canary: Some(1), ..RolloutStrategy::default() },
            reason: Some("demo: orders".to_owned()),
            ..MigrateTenants::default()
        };
        let path = ["tenant-profiles", "shop", "migrate"];
        let started: Rollout = self.client.post(&path, &body).await?;
        let id = started.id.ok_or_else(|| Error::Demo("the roll-out has no id".to_owned()))?;
        let client = self.client;
        expect(self.screen, "the roll-out is done", "done", async || {
            Ok(client.get::<Rollout>(&["rollouts", &id]).await?.state)
        })
        .await?;
        for name in GOOD {
            self.has(name, MIGRATED).await?;
            let found = self.tenant(name).await?;
            let version = found.version.unwrap_or_default();
            self.screen.check(Fact::equal(format!("the API has {name} at version 3"), 3, version));
            self.outcome.migrated += 1;
        }
        let drift: Value = self.client.get(&["tenants", GOOD[1], "drift"]).await?;
        let found = drift["differences"].as_array().map_or(0, Vec::len);
        self.screen.check(Fact::equal(format!("{} does not drift", GOOD[1]), 0, found));
        Ok(())
    }

    async fn decommission_and_restore(&mut self) -> Result<(), Error> {
        let name = GOOD[0];
        self.screen.heading("One is decommissioned, and comes back as it was");
        let deletion = self.delete(name).await?;
        self.has(name, CLOSED).await?;
        self.deletion_is(&deletion, "done").await?;
        for other in &GOOD[1..] {
            self.has(other, MIGRATED).await?;
        }
        self.outcome.decommissioned += 1;
        let body = json!({ "reason": "demo: it was a mistake" });
        let _: Restore = self.client.post(&["deletions", &deletion, "restore"], &body).await?;
        self.screen.now(name, "is restored");
        self.has(name, MIGRATED).await?;
        self.is(name, "ready").await?;
        self.outcome.restored += 1;
        Ok(())
    }

    async fn purge(&mut self) -> Result<(), Error> {
        self.screen.heading("All are decommissioned and purged");
        let mut deletions = Vec::new();
        for name in GOOD.iter().chain([&WRONG]) {
            deletions.push(self.delete(name).await?);
        }
        for deletion in &deletions {
            self.deletion_is(deletion, "done").await?;
            let body = json!({ "force": true, "reason": "demo: it ends" });
            let _: Value = self.client.post(&["deletions", deletion, "purge"], &body).await?;
        }
        for deletion in &deletions {
            self.deletion_is(deletion, "purged").await?;
            self.outcome.purged += 1;
        }
        let left = self.site.left().await?;
        self.screen.check(Fact::equal("nothing of them is left on the target", NOTHING, left));
        Ok(())
    }

    async fn delete(&mut self, name: &str) -> Result<String, Error> {
        let query = [("reason", "demo".to_owned())];
        let id = self.tenant(name).await?.id;
        let located = self.client.delete_located(&["tenants", &id], &query).await?;
        self.screen.now(name, "is decommissioned");
        located.ok_or_else(|| Error::Demo("the deletion has no record".to_owned()))
    }

    async fn tenant(&self, name: &str) -> Result<Tenant, Error> {
        self.client.get(&["tenants", name]).await
    }

    /// The states that the last job of a tenant went through.
    async fn edges(&self, name: &str) -> Result<String, Error> {
        let job_id = self.tenant(name).await?.job_id;
        let job: TenantJob = self.client.get(&["tenant-jobs", &job_id]).await?;
        let first = job.history.first().map(|line| line.from.clone());
        let states = first.into_iter().chain(job.history.into_iter().map(|line| line.to));
        Ok(states.collect::<Vec<_>>().join(" "))
    }

    /// Waits until the tenant is in this state.
    async fn is(&mut self, name: &str, state: &str) -> Result<(), Error> {
        let client = self.client;
        expect(self.screen, &format!("{name} is {state}"), state, async || {
            Ok(client.get::<Tenant>(&["tenants", name]).await?.state)
        })
        .await
    }

    /// Waits until its database has exactly this.
    async fn has(&mut self, name: &str, expected: &str) -> Result<(), Error> {
        let site = self.site;
        let fact = match expected {
            NOTHING => format!("nothing of {name} is left"),
            CLOSED => format!("nobody gets at {name}"),
            _ => format!("{name} has exactly: {expected}"),
        };
        expect(self.screen, &fact, expected, async || site.content(name).await).await
    }

    async fn deletion_is(&mut self, id: &str, state: &str) -> Result<(), Error> {
        let client = self.client;
        let found: Deletion = client.get(&["deletions", id]).await?;
        let target = found.target.unwrap_or_default();
        expect(self.screen, &format!("the deletion of {target} is {state}"), state, async || {
            Ok(client.get::<Deletion>(&["deletions", id]).await?.state)
        })
        .await
    }
}
