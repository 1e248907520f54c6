//! A thousand composites at once.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use serde_json::json;
use slipway_standin::{Options, run};
use slipway_testkit::kube::{ADMIN, KubeEnvironment, OTHER_ADMIN};
use slipway_testkit::wait::until;

use crate::world::{apply, composite, composites, condition_of, make_namespace, until_installed};

const MANY: usize = 1000;
/// Some seconds on an idle machine, and CI is not one.
const TIMEOUT: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_composites_take_three_requests_each_and_some_fail() {
    const NAME: &str = "a_thousand_composites_take_three_requests_each_and_some_fail";
    let Some(kubernetes) = KubeEnvironment::for_test(NAME, Default::default()).await else {
        return;
    };
    let options = Options { install: true, fail_percent: 10, ..Options::default() };
    let standin = kubernetes.client(OTHER_ADMIN).await.unwrap();
    let running = tokio::spawn(run(standin, options));
    let client = kubernetes.client(ADMIN).await.unwrap();
    until_installed(&client, &kubernetes).await;
    make_namespace(&client, "many").await;
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), "many", &composites());

    stream::iter(0..MANY)
        .for_each_concurrent(32, |number| {
            let client = client.clone();
            async move {
                let object = composite(&format!("pr-{number:04}"), &json!({}));
                apply(&client, &composites(), Some("many"), &object).await.unwrap();
            }
        })
        .await;
    let (ready, failed) = until(TIMEOUT, "all of them to be decided", async || {
        // Listing a thousand objects is itself a load.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let found = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let count = |kind: &str| {
            let is_true = |object: &&DynamicObject| {
                condition_of(object, kind).is_some_and(|found| found["status"] == "True")
            };
            found.items.iter().filter(is_true).count()
        };
        let (ready, failed) = (count("Ready"), count("ProvisioningFailed"));
        if ready + failed == MANY {
            Ok((ready, failed))
        } else {
            Err(format!("{ready} + {failed}"))
        }
    })
    .await;
    assert!((60..140).contains(&failed), "{failed} of {} failed", ready + failed);

    let requests = kubernetes
        .audit()
        .unwrap()
        .iter()
        .filter(|record| record.user == OTHER_ADMIN && record.uri.contains("/namespaces/many/"))
        .count();
    assert!(requests <= 3 * MANY, "{requests} requests for {MANY} composites");

    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    until(TIMEOUT, "the end of all of them", async || {
        let found = api.list(&ListParams::default().limit(1)).await;
        let found = found.map_err(|error| error.to_string())?;
        if found.items.is_empty() { Ok(()) } else { Err(format!("{:?}", found.metadata)) }
    })
    .await;
    running.abort();
}
