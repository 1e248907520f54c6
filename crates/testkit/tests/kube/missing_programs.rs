//! The notices when the programs are missing or have a wrong checksum.

use slipway_testkit::kube::{ASSETS_VARIABLE, REQUIRE_VARIABLE, shared};

use crate::{mk_other_role, plays_other_role};

#[tokio::test]
async fn missing_programs_are_said_once_and_the_test_passes() {
    const NAME: &str = "missing_programs::missing_programs_are_said_once_and_the_test_passes";
    if plays_other_role() {
        assert!(shared(NAME).await.is_none());
        assert!(shared("another_test").await.is_none());
        return;
    }
    let nothing = tempfile::tempdir().unwrap();
    let answer = mk_other_role(NAME)
        .env(ASSETS_VARIABLE, nothing.path())
        .env_remove(REQUIRE_VARIABLE)
        .output()
        .unwrap();
    let said = String::from_utf8(answer.stderr).unwrap();
    assert!(answer.status.success(), "{said}");
    let expected = format!("not run: {NAME}: kube-apiserver or etcd is not there");
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(said.matches("not run: ").count(), 1, "{said}");
}

#[tokio::test]
async fn missing_programs_fail_where_they_are_required() {
    const NAME: &str = "missing_programs::missing_programs_fail_where_they_are_required";
    if plays_other_role() {
        shared(NAME).await;
        return;
    }
    let nothing = tempfile::tempdir().unwrap();
    let answer = mk_other_role(NAME)
        .env(ASSETS_VARIABLE, nothing.path())
        .env(REQUIRE_VARIABLE, "1")
        .output()
        .unwrap();
    assert!(!answer.status.success());
    let said = String::from_utf8_lossy(&answer.stderr).into_owned();
    assert!(said.contains("kube-apiserver or etcd is not there"), "{said}");
}
