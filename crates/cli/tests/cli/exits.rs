//! Each exit code, with what causes it.

use std::fs::File;
use std::io;

use serde_json::json;
use slipway_cli::{Exit, Traits};
use tokio::net::TcpListener;

use crate::stand_in::{ID, Reply, StandIn, mk_problem, run, run_into};

#[tokio::test]
async fn refusals_end_by_their_status() {
    for (status, code, exit) in [
        (409, "handle_taken", Exit::Refused),
        (400, "invalid_input", Exit::Refused),
        (500, "internal", Exit::Refused),
        (401, "unauthenticated", Exit::Unauthenticated),
        (403, "forbidden", Exit::Unauthenticated),
        (404, "resource_not_found", Exit::NotFound),
    ] {
        let server = StandIn::new(vec![Reply::of(status, mk_problem(status, code))]).await;
        let ended = server.run(&["resource", "get", ID]).await;
        assert_eq!(ended.exit, exit, "{status}");
        assert!(ended.errors.starts_with(&format!("error[{code}]: it is so\n")), "{ended:?}");
        assert!(ended.errors.contains("\n  field: handle\n"), "{ended:?}");
        assert!(ended.errors.contains("\n  correlation id: c-1\n"), "{ended:?}");
        assert_eq!(ended.output, "", "an error is no result");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_its_own_code() {
    // Bound and closed again, so that nothing listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let ended = run(&url, &["node", "list"], Traits::default(), "").await;
    assert_eq!(ended.exit, Exit::Unreachable);
    assert!(ended.errors.contains(&url) && ended.errors.contains("slipway up"), "{ended:?}");
}

#[tokio::test]
async fn what_is_no_answer_of_ours_is_said() {
    let server = StandIn::new(vec![Reply::of(502, json!({ "error": "bad gateway" }))]).await;
    let ended = server.run(&["node", "list"]).await;
    assert_eq!(ended.exit, Exit::Refused);
    assert!(
        ended.errors.contains("error[unreadable]") && ended.errors.contains("502"),
        "{ended:?}"
    );
    let server = StandIn::new(vec![Reply::of(200, json!({ "not": "a list" }))]).await;
    assert_eq!(server.run(&["node", "list"]).await.exit, Exit::Refused);
}

#[tokio::test]
async fn a_handle_that_nobody_has_is_not_found() {
    let server = StandIn::new(vec![Reply::of(200, json!([]))]).await;
    let ended = server.run(&["resource", "explain", "nobody", "--project", "p"]).await;
    assert_eq!(ended.exit, Exit::NotFound);
    assert!(ended.errors.contains("`nobody` in project `p`"), "{ended:?}");
}

#[tokio::test]
async fn a_result_that_cannot_be_written_is_a_failure() {
    let server = StandIn::new(vec![Reply::of(200, json!([]))]).await;
    let line = ["resource", "list", "-o", "yaml"];
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ended = run_into(Box::new(full), server.url(), &line, Traits::default(), "").await;
    assert_eq!(ended.exit, Exit::Refused, "{ended:?}");
    assert!(ended.errors.starts_with("error[output_failed]: "), "{ended:?}");

    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let ended = run_into(Box::new(writer), server.url(), &line, Traits::default(), "").await;
    assert_eq!(ended.exit, Exit::Success, "a reader that has seen enough: {ended:?}");
    assert_eq!(ended.errors, "");
}
