//! A cluster agent is killed (SIGKILL) at chosen points, and started again: nothing is lost,
//! nothing happens twice, and every report is made.

use std::time::Duration;

use slipway_testkit::kube::{ADMIN, Fault, FaultProxy, Rule, shared};
use slipway_testkit::wait;

use super::{Fleet, Site};
use crate::control_plane::TIMEOUT;

/// Lets this many requests with this in their path pass, and holds the next one.
fn hold_after(proxy: &FaultProxy, passing: usize, path: &str) {
    let pass = Rule::new(Fault::Delay(Duration::ZERO));
    if passing > 0 {
        proxy.add(pass.path(path).times(passing));
    }
    proxy.add(Rule::new(Fault::Hold).path(path).method("PATCH").times(1));
}

async fn reported_once(fleet: &Fleet, site: &Site, object: &str, event: &str) {
    wait::until(TIMEOUT, "one report", async || {
        let reports = fleet.reports(site, object).await;
        let is_one = reports == [(event.to_owned(), "SUCCESS".to_owned())];
        if is_one { Ok(()) } else { Err(format!("{reports:?}\n{}", site.log())) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_killed_between_apply_and_report_loses_nothing() {
    let Some(kubernetes) = shared("crash").await else { return };
    let fleet = Fleet::start("crash").await;
    let site = fleet.join(kubernetes, "east").await;
    let proxy = FaultProxy::before(kubernetes).await;
    site.reach_by(&proxy.redirect(&kubernetes.kubeconfig(ADMIN)));
    let first = fleet.submit(&[("a", "0"), ("b", "0")]).await;
    site.run_once().await;
    reported_once(&fleet, &site, &first, "DEPLOY").await;

    // The stack's ConfigMap of the inventory is written with the intent, after the apply, and
    // after the report.
    let inventory = format!("configmaps/slipway-stack-{}", fleet.stack_id);
    for (round, (passing, path)) in
        [(0, "configmaps/b?"), (1, &*inventory), (2, &*inventory)].into_iter().enumerate()
    {
        let value = (round + 1).to_string();
        if path.ends_with("b?") {
            // A trial changes nothing, so it is let through.
            proxy.add(Rule::new(Fault::Delay(Duration::ZERO)).path("dryRun"));
        }
        hold_after(&proxy, passing, path);
        let object = fleet.submit(&[("a", &value), ("b", &value)]).await;
        let agent = site.run();
        wait::until(TIMEOUT, "the request that is held", async || {
            if proxy.waiting() == 1 { Ok(()) } else { Err(site.log()) }
        })
        .await;
        drop(agent);
        proxy.clear();
        let agent = site.run();
        reported_once(&fleet, &site, &object, "DEPLOY").await;
        site.expect(&[("a", &value), ("b", &value)]).await;
        // What the dead agent sent arrives at last, and is harmless.
        assert_eq!(proxy.release().await, 1);
        drop(agent);
        site.run_once().await;
        site.expect(&[("a", &value), ("b", &value)]).await;
        reported_once(&fleet, &site, &object, "DEPLOY").await;
    }

    // The same in the middle of a removal.
    proxy.add(Rule::new(Fault::Hold).path("configmaps/a").method("DELETE").times(1));
    let deletion = fleet.delete_stack("").await;
    let agent = site.run();
    wait::until(TIMEOUT, "the request that is held", async || {
        if proxy.waiting() == 1 { Ok(()) } else { Err(site.log()) }
    })
    .await;
    drop(agent);
    proxy.clear();
    let agent = site.run();
    fleet.delivered(&deletion).await;
    site.expect(&[]).await;
    // A deletion that lands late does not reach what was restored meanwhile: it names the uid.
    fleet.restore(&deletion).await;
    site.expect(&[("a", "3"), ("b", "3")]).await;
    assert_eq!(proxy.release().await, 1);
    drop(agent);
    site.run_once().await;
    site.expect(&[("a", "3"), ("b", "3")]).await;
}
