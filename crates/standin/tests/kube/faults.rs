//! Servers that stop in the middle of the work.

use kube::api::DeleteParams;
use serde_json::json;
use slipway_testkit::kube::{ADMIN, KubeEnvironment, Part};

use crate::world::{
    World, composite, composites, make_namespace, servers, start_program, until_installed,
};

#[tokio::test]
async fn it_goes_on_where_it_was_when_the_servers_come_back() {
    const NAME: &str = "it_goes_on_where_it_was_when_the_servers_come_back";
    let Some(kubernetes) = KubeEnvironment::for_test(NAME, Default::default()).await else {
        return;
    };
    let journal = kubernetes.folder().join("journal");
    start_program(&kubernetes, "none", &journal).await;
    let client = kubernetes.client(ADMIN).await.unwrap();
    until_installed(&client, &kubernetes).await;
    make_namespace(&client, "faults").await;
    let world = World { client, namespace: "faults".to_owned(), journal };
    world.apply(&composite("waits", &json!({ "standin": "ready-after=3s" }))).await;
    world.until("waits", "Ready", "False").await;
    kubernetes.restart(Part::ApiServer).await.unwrap();
    world.until("waits", "Ready", "True").await;
    kubernetes.restart(Part::Etcd).await.unwrap();
    world.apply(&composite("later", &json!({}))).await;
    world.until("later", "Ready", "True").await;

    // A composite that is deleted while the stand-in is down ends after its restart.
    kubernetes.end_beside("standin").await.unwrap();
    world.api(&composites()).delete("waits", &DeleteParams::default()).await.unwrap();
    start_program(&kubernetes, "none", &world.journal).await;
    world.until_gone(&composites(), "waits").await;
    world.until_gone(&servers(), "waits").await;
}
